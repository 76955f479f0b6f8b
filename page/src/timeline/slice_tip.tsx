// SPDX-License-Identifier: MIT
// When and how long a slice is, for tips of tracks that show no calls.
import type { ComponentChildren } from "preact";
import { kSummed } from "../backend/types/tiles";
import { count, duration } from "../model/time";
import type { SliceHit } from "./track_renderer";

export function SliceTip({ hit, name, children }: { hit: SliceHit; name: string; children?: ComponentChildren }) {
  const { row, at, begin, pixelNs } = hit;
  const length = duration(row.duration[at]!);
  return (
    <>
      <div class="tip-name">{name}</div>
      <div class="tip-facts">
        {row.flags[at]! & kSummed ? (
          <>
            <b>{count(row.count[at]!)} times</b> in {duration(pixelNs)}; the longest took {length}
          </>
        ) : (
          <>
            <b>{length}</b> at {duration(begin)}
          </>
        )}
        {children}
      </div>
    </>
  );
}
