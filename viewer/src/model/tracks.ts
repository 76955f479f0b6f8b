// The tracks of the timeline from top to bottom: which are shown, in what order, how high each is.
//
//   pinned tracks      stay in place while the others scroll
//   process  (a heading, when there is more than one process or trace)
//     thread           a strip of its states if they are known, then one row for each level of calls; folded: thin
//                      rows without names
//   CPUs     (a heading; then for each CPU which thread and which function ran there)
import type { ThreadInfo, TraceInfo } from "../backend/types";

export type Order = "trace" | "name" | "calls" | "start";
export const ORDERS: readonly { id: Order; label: string }[] = [
  { id: "trace", label: "as recorded" },
  { id: "name", label: "name" },
  { id: "calls", label: "most calls" },
  { id: "start", label: "start" },
];

/** Which tracks, chosen by the person. Threads are named by `trace:thread`. */
export interface TrackChoice {
  readonly order: Order;
  readonly filter: string;
  readonly hideIdle: boolean;
  readonly pinned: ReadonlySet<string>;
  readonly folded: ReadonlySet<string>;
}

export const NO_CHOICE: TrackChoice = {
  order: "trace",
  filter: "",
  hideIdle: false,
  pinned: new Set(),
  folded: new Set(),
};

export interface Track {
  readonly kind: "process" | "thread" | "cpus" | "cpu";
  readonly key: string;
  readonly trace: number;
  readonly process: number;
  readonly thread: number; // index in the trace; -1 for a process; of a CPU its place in TraceInfo.cpus
  readonly title: string;
  readonly subtitle: string;
  readonly rows: number;
  readonly rowHeight: number;
  /** Height of what stands above the first row: the strip of states, below it the lane of what was left out. */
  readonly lead: number;
  /** Height of that lane. */
  readonly lane: number;
  readonly folded: boolean;
  readonly pinned: boolean;
  readonly y: number; // within its area: pinned ones and the others each count from 0
  readonly height: number;
}

export interface Layout {
  readonly pinned: readonly Track[];
  readonly scrolled: readonly Track[];
  readonly pinnedHeight: number;
  readonly scrolledHeight: number;
  readonly hidden: number;
}

export const ROW = 18;
export const FOLDED_ROW = 4;
const FOLDED_ROWS = 8;
const GAP = 7;
const LEAST = 34; // room for a name and a second line
const FOLDED_LEAST = 20;
const HEADING = 24;
/** The strip of a thread's states, and the air below it. */
export const STRIP = 9;
export const STRIP_AIR = 2;
/** In which a thread shows that functions were not traced for a while, if its process ever left some out. */
const LANE = 12;
const FOLDED_LANE = 4;
/** No thread takes more rows at once; deeper levels are reached by scrolling in recursion this deep never looks at. */
export const MOST_ROWS = 512;

export function threadKey(trace: number, thread: number): string {
  return `${trace}:${thread}`;
}

export function cpuKey(trace: number, cpu: number): string {
  return `${trace}:c${cpu}`;
}

/** Whether a thread does anything within [begin, end]. */
function active(thread: ThreadInfo, begin: number, end: number): boolean {
  return (thread.calls > 0 || thread.unreadFrom !== undefined) && thread.end >= begin && thread.begin <= end;
}

function matches(filter: string, thread: ThreadInfo): boolean {
  if (filter === "") return true;
  const text = `${thread.name} ${thread.tid}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((part) => text.includes(part));
}

function compare(order: Order): (a: ThreadInfo, b: ThreadInfo) => number {
  switch (order) {
    case "name":
      return (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }) || a.tid - b.tid;
    case "calls":
      return (a, b) => b.calls - a.calls;
    case "start":
      return (a, b) => a.begin - b.begin;
    case "trace":
      return (a, b) => a.index - b.index;
  }
}

export function layoutTracks(
  traces: readonly TraceInfo[],
  choice: TrackChoice,
  range: { begin: number; end: number },
): Layout {
  const pinned: Track[] = [];
  const scrolled: Track[] = [];
  let pinnedHeight = 0;
  let scrolledHeight = 0;
  let hidden = 0;
  const place = (track: Omit<Track, "y">): void => {
    if (track.pinned) {
      pinned.push({ ...track, y: pinnedHeight });
      pinnedHeight += track.height;
    } else {
      scrolled.push({ ...track, y: scrolledHeight });
      scrolledHeight += track.height;
    }
  };
  traces.forEach((trace, t) => {
    const headings = trace.processes.length > 1 || traces.length > 1;
    for (const process of trace.processes) {
      const all = trace.threads.filter((thread) => thread.process === process.index);
      const shown = all
        .filter(
          (thread) =>
            // What was pinned stays in sight, whatever else is chosen.
            choice.pinned.has(threadKey(t, thread.index)) ||
            (matches(choice.filter, thread) && (!choice.hideIdle || active(thread, range.begin, range.end))),
        )
        .sort(compare(choice.order));
      hidden += all.length - shown.length;
      if (shown.length === 0) continue;
      const processKey = `${t}:p${process.index}`;
      const partial = process.switches.some((one) => !one.all);
      const processFolded = choice.folded.has(processKey);
      if (headings) {
        place({
          kind: "process",
          key: processKey,
          trace: t,
          process: process.index,
          thread: -1,
          title: traces.length > 1 ? `${t === 0 ? "A" : "B"} · ${process.name}` : process.name,
          subtitle: `${process.pid} · ${shown.length === 1 ? "1 thread" : `${shown.length} threads`}`,
          rows: 0,
          rowHeight: 0,
          lead: 0,
          lane: 0,
          folded: processFolded,
          pinned: false,
          height: HEADING,
        });
      }
      for (const thread of shown) {
        const key = threadKey(t, thread.index);
        const isPinned = choice.pinned.has(key);
        if (processFolded && !isPinned && headings) continue;
        const folded = choice.folded.has(key);
        const rows = Math.min(Math.max(thread.maxDepth, 1), MOST_ROWS);
        const lane = partial ? (folded ? FOLDED_LANE : LANE) + STRIP_AIR : 0;
        const lead = (thread.states ? STRIP + STRIP_AIR : 0) + lane;
        const height = folded
          ? Math.max(FOLDED_LEAST, Math.min(rows, FOLDED_ROWS) * FOLDED_ROW + GAP + lead)
          : Math.max(LEAST, rows * ROW + GAP + lead);
        place({
          kind: "thread",
          key,
          trace: t,
          process: process.index,
          thread: thread.index,
          title: thread.name || `thread ${thread.tid}`,
          subtitle: `${thread.tid}`,
          rows: folded ? Math.min(rows, FOLDED_ROWS) : rows,
          rowHeight: folded ? FOLDED_ROW : ROW,
          lead,
          lane,
          folded,
          pinned: isPinned,
          height,
        });
      }
    }
    placeCpus(trace, t, traces.length > 1, choice, place);
  });
  return { pinned, scrolled, pinnedHeight, scrolledHeight, hidden };
}

/** Below the threads: there may be hundreds of CPUs. */
function placeCpus(
  trace: TraceInfo,
  t: number,
  several: boolean,
  choice: TrackChoice,
  place: (track: Omit<Track, "y">) => void,
): void {
  if (trace.cpus.length === 0) return;
  const common = { trace: t, process: -1, lead: 0, lane: 0 };
  const key = `${t}:cpus`;
  const folded = choice.folded.has(key);
  place({
    ...common,
    ...{ kind: "cpus", key, thread: -1, folded, pinned: false, rows: 0, rowHeight: 0, height: HEADING },
    title: several ? `${t === 0 ? "A" : "B"} · CPUs` : "CPUs",
    subtitle: trace.cpus.length === 1 ? "1" : `${trace.cpus.length}: who ran there`,
  });
  trace.cpus.forEach(({ cpu }, i) => {
    const key = cpuKey(t, i);
    const pinned = choice.pinned.has(key);
    if (folded && !pinned) return;
    place({
      ...common,
      ...{ kind: "cpu", key, thread: i, folded: false, pinned, rows: 2, rowHeight: ROW, height: 2 * ROW + GAP },
      title: `CPU ${cpu}`,
      subtitle: "",
    });
  });
}

/** The tracks of one area that touch [from, to), by bisection. */
export function visibleTracks(tracks: readonly Track[], from: number, to: number): readonly Track[] {
  let low = 0;
  let high = tracks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tracks[middle]!.y + tracks[middle]!.height <= from) low = middle + 1;
    else high = middle;
  }
  const first = low;
  while (low < tracks.length && tracks[low]!.y < to) ++low;
  return tracks.slice(first, low);
}
