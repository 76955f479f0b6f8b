// SPDX-License-Identifier: MIT
// CPUs: which thread ran there, below it which function. Threads of other processes are grey.
import { CPU_FUNCTION, CPU_THREAD, kOpenEnd, kSummed, type Row } from "../backend/types/tiles";
import { bringTrack } from "../model/actions";
import { readable, visible } from "../model/names";
import { store } from "../model/store";
import type { Frame } from "./frame";
import type { Placed } from "./scene";
import { SliceTip } from "./slice_tip";
import { laneOfRow, type SliceHit, type TrackRenderer } from "./track_renderer";

/** Where records of a CPU are missing nothing is said of it. */
function drawMissing(frame: Frame, { track, top }: Placed, cpu: number): void {
  const { r, scene, state } = frame;
  const offset = scene.offset(track.trace);
  for (const gap of state.traces[track.trace]!.info.cpus[cpu]?.gaps ?? []) {
    const x0 = Math.max(-2, frame.toX(gap.begin + offset));
    const x1 = Math.min(r.width + 2, frame.toX(gap.end + offset));
    if (x1 < 0 || x0 > r.width) continue;
    r.rect(x0, top, Math.max(1, x1 - x0), track.height - 1, scene.inks.gapGround);
    r.hatch(x0, top, Math.max(1, x1 - x0), track.height - 1, scene.inks.lost, "crossed");
  }
}

const drawn = new WeakMap<Row, Row>();

/** Who left such a stretch was not recorded, so nobody knows how long it ran: the last of the tasks' looks is for that. */
export function notKnown(row: Row, unknown: number): Row {
  let made = drawn.get(row);
  if (!made) {
    const func = row.func.map((task, i) => (row.flags[i]! & kOpenEnd && !(row.flags[i]! & kSummed) ? unknown : task));
    drawn.set(row, (made = { ...row, func, flags: row.flags.map((flags) => flags & ~kOpenEnd) }));
  }
  return made;
}

function CpuTip({ hit }: { hit: SliceHit }) {
  const { row, at } = hit;
  const { functions, tasks } = store.state.traces[hit.trace]!.info;
  const task = tasks[row.func[at]!];
  const runs = task && visible(`${task.name || "thread"} ${task.tid}${task.ofRun ? "" : " (another process)"}`);
  const ofFunction = row.depth === CPU_FUNCTION;
  const mixed = !ofFunction && (row.flags[at]! & (kSummed | kOpenEnd)) === kOpenEnd;
  const name = ofFunction ? readable(functions[row.func[at]!]?.name ?? "?") : (runs ?? "?");
  return (
    <SliceTip hit={hit} name={mixed ? "not known who ran" : name}>
      {mixed && <span class="quiet"> · {name} began; when it left, and who followed, was not recorded</span>}
      {ofFunction && <span class="quiet"> · innermost traced call</span>}
    </SliceTip>
  );
}

export const cpuTracks: TrackRenderer = {
  kind: "cpu",
  section: {
    title: "CPUs",
    key: "cpus",
    letter: "c",
    words: (count) => (count === 1 ? "1" : `${count}: who ran there`),
  },

  draw(frame, place, info) {
    const { scene } = frame;
    const { track, top } = place;
    drawMissing(frame, place, info.owner);
    frame.drawLanes(place, info, (lane) => {
      if (lane > CPU_FUNCTION) return undefined;
      const looks = (lane === CPU_THREAD ? scene.taskLooks(track.trace) : scene.looks(track.trace))!;
      const known =
        lane === CPU_THREAD
          ? { drawn: (row: Row) => notKnown(row, frame.state.traces[track.trace]!.info.tasks.length) }
          : {};
      return { ...known, palette: looks.full, looks, y: top + 2 + lane * track.rowHeight, height: track.rowHeight - 1 };
    });
  },

  lanesAt: laneOfRow,
  Tip: CpuTip,

  /** A stretch leads to its thread. */
  click({ trace, row, at }) {
    const { tasks } = store.state.traces[trace]!.info;
    const thread = row.depth === CPU_FUNCTION ? row.index[at]! : (tasks[row.func[at]!]?.thread ?? -1);
    if (thread >= 0) bringTrack(trace, thread);
  },
};
