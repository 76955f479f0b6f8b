// SPDX-License-Identifier: MIT
// The tracks of the timeline from top to bottom: which are shown, in what order, how high each is.
//
//   pinned tracks      stay in place while the others scroll
//   frames   (a heading, then a bar for each name)
//   process  (a heading, when there is more than one process or trace)
//     thread           strips of what else it did, then one row for each level of calls; folded: thin rows without names
//   sections (a heading, then the tracks of a kind that is of no thread, as CPUs)
import { visible } from "./names";
import type { ProcessInfo, ThreadInfo, TraceInfo, TrackInfo } from "../backend/types/trace";

export type Order = "trace" | "name" | "calls" | "start" | "slowest" | "blocked" | "cpu" | "waits";
export const ORDERS: readonly { id: Order; label: string; needsStates?: true }[] = [
  { id: "trace", label: "as recorded" },
  { id: "name", label: "name" },
  { id: "calls", label: "most calls" },
  { id: "start", label: "start" },
  { id: "slowest", label: "slowest call" },
  { id: "blocked", label: "longest blocked", needsStates: true },
  { id: "cpu", label: "most CPU", needsStates: true },
  { id: "waits", label: "waiter and waker", needsStates: true },
];

/** What is known of a trace's threads beside its facts, by their places. */
export interface ThreadRanks {
  readonly slowest: readonly number[];
  readonly blocked: readonly number[];
  readonly cpu: readonly number[];
}

/** What the layout goes by that was asked for meanwhile; what is not there yet is left out. */
export interface Known {
  /** By trace and thread: levels that its calls have in view. */
  readonly levels?: readonly (readonly number[] | undefined)[];
  /** By trace. */
  readonly ranks?: readonly (ThreadRanks | undefined)[];
  /** Threads that belong together: who waits, and who ended that. */
  readonly together?: { readonly trace: number; readonly threads: readonly number[] } | undefined;
}

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

/** Where the tracks of a kind lie. Those of threads' calls are laid out by themselves. */
export interface TrackForm {
  readonly kind: string;
  /** Above the calls of the thread that owns it: so high; 0: among them, in their rows. */
  readonly strip?: number;
  /** Below all threads, or above them, under a heading. Addresses name that by `key`, a track by `letter` and its owner. */
  readonly section?: {
    readonly title: string;
    readonly key: string;
    readonly letter: string;
    readonly above?: true;
    readonly words: (count: number, info: TraceInfo) => string;
    /** Of a track; left out: a row for each lane. */
    readonly height?: (info: TrackInfo) => number;
  };
}

/** A track of its thread's, above the calls. */
export interface Strip {
  readonly info: TrackInfo;
  readonly top: number; // below the top of the thread's rows' room
  readonly height: number;
}

export interface Track {
  /** Of its TrackInfo; of a heading "process", or its section's key. */
  readonly kind: string;
  readonly key: string;
  readonly trace: number;
  readonly process: number;
  readonly thread: number; // whose calls it shows, in TraceInfo.threads; -1: no thread's
  readonly info: TrackInfo | undefined; // a heading has none
  readonly strips: readonly Strip[];
  readonly title: string;
  readonly subtitle: string;
  readonly rows: number;
  readonly rowHeight: number;
  /** Height of what stands above the first row: the strips, below them the lanes of messages and of what was left out. */
  readonly lead: number;
  /** Heights of the two lanes; 0: there is none. */
  readonly notes: number;
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
export const FOLDED_ROW = 3;
const FOLDED_ROWS = 4;
const FOLDED_STRIP = 3;
const GAP = 7;
const LEAST = 34; // room for a name and a second line
/** Of a thread without calls in view: its name. */
const IDLE = 20;
const FOLDED_LEAST = 15;
const HEADING = 24;
/** The air below a strip. */
export const STRIP_AIR = 2;
/** In which a thread shows that functions were not traced for a while, if its process ever left some out. */
const LANE = 12;
const FOLDED_LANE = 4;
/** In which a thread shows its messages, if it has any; and the air below. */
const NOTES = 14;
const FOLDED_NOTES = 5;
export const NOTE_AIR = 1;
/** No thread takes more rows at once; deeper levels are reached by scrolling in recursion this deep never looks at. */
export const MOST_ROWS = 512;

export function threadKey(trace: number, thread: number): string {
  return `${trace}:${thread}`;
}

/** Whether a thread does anything within [begin, end]. */
function active(thread: ThreadInfo, begin: number, end: number): boolean {
  return (thread.calls > 0 || thread.unreadFrom !== null) && thread.end >= begin && thread.begin <= end;
}

function matches(filter: string, thread: ThreadInfo): boolean {
  if (filter === "") return true;
  const text = `${thread.name} ${thread.tid} ${thread.group ?? ""}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((part) => text.includes(part));
}

function compare(order: Order, t: number, known: Known): (a: ThreadInfo, b: ThreadInfo) => number {
  const together = known.together?.trace === t ? known.together.threads : [];
  const place = (thread: ThreadInfo) => (together.indexOf(thread.index) + together.length + 1) % (together.length + 1);
  const rank = order === "slowest" || order === "blocked" || order === "cpu" ? known.ranks?.[t]?.[order] : undefined;
  switch (order) {
    case "slowest":
    case "blocked":
    case "cpu":
      return (a, b) => (rank?.[b.index] ?? 0) - (rank?.[a.index] ?? 0) || a.index - b.index;
    case "waits":
      return (a, b) => place(a) - place(b) || a.index - b.index;
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
  forms: readonly TrackForm[] = [],
  known: Known = {},
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
    const ofThread = new Map(trace.tracks.filter(({ kind }) => kind === "thread").map((info) => [info.owner, info]));
    const area: Area = { trace, t, ofThread, several: traces.length > 1, choice, known, place };
    const strips = stripsOf(trace, forms);
    for (const form of forms) if (form.section?.above) placeSection(area, form);
    for (const process of trace.processes) hidden += placeProcess(area, process, range, strips);
    for (const form of forms) if (!form.section?.above) placeSection(area, form);
  });
  return { pinned, scrolled, pinnedHeight, scrolledHeight, hidden };
}

/** Where the tracks of a trace go. */
interface Area {
  readonly trace: TraceInfo;
  readonly t: number; // which trace
  readonly several: boolean;
  readonly ofThread: ReadonlyMap<number, TrackInfo>;
  readonly choice: TrackChoice;
  readonly known: Known;
  readonly place: (track: Omit<Track, "y">) => void;
}

/** Threads of a group stand together, where the first of them is. */
function gather(threads: ThreadInfo[]): void {
  if (threads.every(({ group }) => group === null)) return;
  const first = new Map<string, number>();
  threads.forEach(({ group }, i) => group !== null && !first.has(group) && first.set(group, i));
  const place = new Map(threads.map((thread, i) => [thread, first.get(thread.group ?? "") ?? i]));
  threads.sort((a, b) => place.get(a)! - place.get(b)!);
}

/** Its heading and its threads; how many of them are not shown. */
function placeProcess(
  area: Area,
  process: ProcessInfo,
  range: { begin: number; end: number },
  strips: ReadonlyMap<number, readonly Strip[]>,
): number {
  const { trace, t, several, choice, known } = area;
  const all = trace.threads.filter((thread) => thread.process === process.index);
  const shown = all
    .filter(
      (thread) =>
        // What was pinned stays in sight, whatever else is chosen.
        choice.pinned.has(threadKey(t, thread.index)) ||
        (matches(choice.filter, thread) && (!choice.hideIdle || active(thread, range.begin, range.end))),
    )
    .sort(compare(choice.order, t, known));
  gather(shown);
  if (shown.length === 0) return all.length;
  const headings = trace.processes.length > 1 || several;
  const key = `${t}:p${process.index}`;
  const folded = choice.folded.has(key);
  if (headings)
    area.place({
      ...{ kind: "process", key, trace: t, process: process.index, thread: -1, info: undefined, strips: [] },
      ...{ rows: 0, rowHeight: 0, lead: 0, notes: 0, lane: 0, folded, pinned: false, height: HEADING },
      title: several ? `${t === 0 ? "A" : "B"} · ${process.name}` : process.name,
      subtitle: `${process.pid} · ${shown.length === 1 ? "1 thread" : `${shown.length} threads`}`,
    });
  const partial = process.switches.some((one) => !one.all);
  for (const thread of shown)
    if (!headings || !folded || choice.pinned.has(threadKey(t, thread.index)))
      placeThread(area, thread, partial, strips.get(thread.index) ?? []);
  return all.length - shown.length;
}

/** `partial`: its process ever left some functions out. */
function placeThread(
  { trace, t, ofThread, choice, known, place }: Area,
  thread: ThreadInfo,
  partial: boolean,
  open: readonly Strip[],
): void {
  const key = threadKey(t, thread.index);
  const folded = choice.folded.has(key);
  const strips = folded
    ? open.map((strip, i) =>
        strip.height === 0 ? strip : { ...strip, top: i * (FOLDED_STRIP + STRIP_AIR), height: FOLDED_STRIP },
      )
    : open;
  const deepest = Math.max(thread.depths, 1);
  // Calls of this moment: the deepest stack there ever was would keep the other threads off the screen.
  const rows = Math.min(known.levels?.[t]?.[thread.index] ?? deepest, deepest, MOST_ROWS);
  const lane = partial ? (folded ? FOLDED_LANE : LANE) + STRIP_AIR : 0;
  const says = (thread.notes?.message ?? 0) > 0 && !trace.aggregated;
  const notes = says ? (folded ? FOLDED_NOTES : NOTES) + NOTE_AIR : 0;
  const lead = strips.reduce((sum, strip) => sum + roomOf(strip), lane + notes);
  place({
    ...{ kind: "thread", key, trace: t, process: thread.process, thread: thread.index, strips, lead, notes, lane },
    folded,
    info: ofThread.get(thread.index),
    title: thread.name || `thread ${thread.tid}`,
    subtitle: thread.fiber
      ? "fiber"
      : thread.group === null
        ? `${thread.tid}`
        : `${thread.tid} · ${visible(thread.group)}`,
    rows: folded ? Math.min(rows, FOLDED_ROWS) : rows,
    rowHeight: folded ? FOLDED_ROW : ROW,
    pinned: choice.pinned.has(key),
    height: folded
      ? Math.max(FOLDED_LEAST, Math.min(rows, FOLDED_ROWS) * FOLDED_ROW + 3 + lead)
      : Math.max(rows === 0 ? IDLE : LEAST, rows * ROW + GAP + lead),
  });
}

/** With the air below it; one without height lies in the rows of the calls. */
const roomOf = ({ height }: Strip) => (height === 0 ? 0 : height + STRIP_AIR);

/** By thread, one below the other. */
function stripsOf(trace: TraceInfo, forms: readonly TrackForm[]): Map<number, Strip[]> {
  const strips = new Map<number, Strip[]>();
  for (const { kind, strip: height } of forms) {
    if (height === undefined) continue;
    for (const info of trace.tracks) {
      if (info.kind !== kind) continue;
      const above = strips.get(info.owner) ?? [];
      const last = above.at(-1);
      above.push({ info, top: last ? last.top + roomOf(last) : 0, height });
      strips.set(info.owner, above);
    }
  }
  return strips;
}

/** Of a kind that is of no thread: there may be hundreds of tracks in it. */
function placeSection({ trace, t, several, choice, place }: Area, { kind, section }: TrackForm): void {
  const tracks = trace.tracks.filter((info) => info.kind === kind);
  if (!section || tracks.length === 0) return;
  const common = { trace: t, process: -1, thread: -1, strips: [], lead: 0, notes: 0, lane: 0 };
  const key = `${t}:${section.key}`;
  const folded = choice.folded.has(key);
  place({
    ...common,
    ...{ kind: section.key, key, info: undefined, folded, pinned: false, rows: 0, rowHeight: 0, height: HEADING },
    title: several ? `${t === 0 ? "A" : "B"} · ${section.title}` : section.title,
    subtitle: section.words(tracks.length, trace),
  });
  for (const info of tracks) {
    const key = `${t}:${section.letter}${info.owner}`;
    const pinned = choice.pinned.has(key);
    if (folded && !pinned) continue;
    const rows = Math.min(Math.max(info.lanes, 1), MOST_ROWS);
    place({
      ...common,
      ...{ kind, key, info, folded: false, pinned, rows, rowHeight: ROW },
      height: section.height?.(info) ?? rows * ROW + GAP,
      title: info.name,
      subtitle: info.words ?? "",
    });
  }
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
