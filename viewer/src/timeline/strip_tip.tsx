// What the pointer shows over a thread's states and over CPU lanes.
import { useEffect, useState } from "preact/hooks";
import { CPU_FUNCTION, kOpenEnd, kSummed, STRIP_DEPTHS, type StateLine } from "../backend/types";
import { readable, visible } from "../model/names";
import { store } from "../model/store";
import { count, duration } from "../model/time";
import type { StripHit } from "./scene";

/** Words for STRIP_DEPTHS. */
export const STATE_NAMES = {
  running: "on CPU",
  runnable: "runnable, waiting for a CPU",
  blocked: "blocked",
  unknown: "not known",
};

/** What the server says of a state; asked for once the pointer rests. */
function useState_(hit: StripHit, wanted: boolean): StateLine | undefined {
  const [line, setLine] = useState<StateLine>();
  const index = hit.row.index[hit.at]!;
  const key = wanted ? `${hit.trace}.${hit.track.thread}.${index}` : "";
  useEffect(() => {
    setLine(undefined);
    if (!wanted) return;
    let dropped = false;
    const timer = setTimeout(() => {
      store.state.traces[hit.trace]?.backend.state(hit.track.thread, index).then(
        (found) => !dropped && setLine(found),
        () => undefined, // what is known without it is shown already
      );
    }, 60);
    return () => {
      dropped = true;
      clearTimeout(timer);
    };
  }, [key]);
  return line;
}

export function StripTip({ hit }: { hit: StripHit }) {
  const { row, at } = hit;
  const summed = (row.flags[at]! & kSummed) !== 0;
  const info = store.state.traces[hit.trace]!.info;
  const cpu = hit.track.kind === "cpu";
  const line = useState_(hit, !cpu && !summed);
  const func = row.func[at]!;
  let name: string = STATE_NAMES[STRIP_DEPTHS[row.depth] ?? "unknown"];
  if (cpu && row.depth === CPU_FUNCTION) name = readable(info.functions[func]?.name ?? "?");
  else if (cpu) {
    const task = info.tasks[func];
    name = task ? visible(`${task.name || "thread"} ${task.tid}${task.ofRun ? "" : " (another process)"}`) : "?";
  }
  return (
    <>
      <div class="tip-name">{line ? visible(line.words) : name}</div>
      <div class="tip-facts">
        {summed ? (
          <>
            <b>{count(row.count[at]!)} times</b> in {duration(hit.pixelNs)}; the longest took{" "}
            {duration(row.duration[at]!)}
          </>
        ) : (
          <>
            <b>{duration(row.duration[at]!)}</b> at {duration(hit.begin)}
          </>
        )}
        {line?.by && <span class="quiet"> · Click: go to the call that woke it</span>}
        {cpu && !summed && (row.flags[at]! & kOpenEnd) !== 0 && (
          <span class="quiet"> · began here; others may have followed, of whom nothing was recorded</span>
        )}
        {cpu && row.depth === CPU_FUNCTION && <span class="quiet"> · innermost traced call</span>}
      </div>
    </>
  );
}
