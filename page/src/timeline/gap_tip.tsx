// SPDX-License-Identifier: MIT
// What the pointer shows over gaps, and over what was kept.
import { readable } from "../model/names";
import { store } from "../model/store";
import { leftOutWords, momentWords, offWords } from "../model/switches";
import { count, duration } from "../model/time";
import type { GapHit } from "./gaps";

export function GapTip({ gap, trace, thread }: { gap: GapHit; trace: number; thread: number }) {
  const info = store.state.traces[trace]!.info;
  const of = info.threads[thread]!;
  const length = duration(gap.end - gap.begin);
  switch (gap.kind) {
    case "overwritten":
      return (
        <>
          <div class="tip-name">Overwritten</div>
          <div class="tip-facts">
            About <b>{count(of.overwrittenEvents / 2)} calls</b> of this thread, {length}, are older than memory held.
            <span class="quiet"> karst run --memory gives more.</span>
          </div>
        </>
      );
    case "missing":
      return (
        <>
          <div class="tip-name">Lost</div>
          <div class="tip-facts">
            Records are missing for <b>{length}</b>: calls that are open here may have ended, and others been made.
          </div>
        </>
      );
    case "off":
      return (
        <>
          <div class="tip-name">{offWords(gap.reason)}</div>
          <div class="tip-facts">
            <b>{length}</b> from {duration(gap.begin)}
          </div>
        </>
      );
    case "left out":
      return (
        <>
          <div class="tip-name">{leftOutWords(gap.of, (f) => readable(info.functions[f]?.name ?? "?"))}</div>
          <div class="tip-facts">
            <b>{length}</b> from {duration(gap.begin)}: calls of theirs are not in the trace; all others are.
          </div>
        </>
      );
    case "kept":
      return (
        <>
          <div class="tip-name">{momentWords(gap.moment)}</div>
          <div class="tip-facts">
            {gap.end > gap.begin ? (
              <>
                <b>{length}</b> from {duration(gap.begin)}
              </>
            ) : (
              <>at {duration(gap.begin)}</>
            )}
            , kept as <b>--kept {gap.moment.number}</b>
            {gap.moment.lostEvents > 0 && (
              <span class="mark">
                {" "}
                · {count(gap.moment.lostEvents)} records were overwritten before they could be kept
              </span>
            )}
          </div>
        </>
      );
  }
}
