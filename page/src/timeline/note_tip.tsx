// SPDX-License-Identifier: MIT
// What the pointer shows over messages.
import { visible } from "../model/names";
import { count, duration } from "../model/time";
import type { NoteHit } from "./note_marks";

export function NoteTip({ mark, bucketNs }: NoteHit) {
  return (
    <>
      <div class="tip-name">{visible(mark.line) || "(empty)"}</div>
      <div class="tip-facts">
        {mark.count > 1 ? (
          <>
            the first of <b>{count(mark.count)} messages</b> in {duration(bucketNs)}, at {duration(mark.time)}. Click to
            zoom in.
          </>
        ) : (
          <>
            message at <b>{duration(mark.time)}</b>. Click to select it and its call.
          </>
        )}
      </div>
    </>
  );
}
