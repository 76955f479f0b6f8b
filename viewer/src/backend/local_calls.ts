// Answers about single calls from columns in memory: tiles, a call's family, its sisters. The same
// rules as the server's (docs/viewer-protocol.md); for exported pages, which hold a bounded number of calls. Their sums are the
// engine's (engine.ts).
import { kNoParent, type Columns } from "./decode";
import { minus, type LocalStates } from "./local_states";
import {
  kInherited,
  kResumed,
  kSummed,
  type CallInfo,
  type CallLine,
  type CallRef,
  type OccurrenceQuery,
  type Occurrences,
  type Row,
} from "./types";

export function line(columns: Columns, index: number): CallLine {
  return {
    index,
    function: columns.func[index]!,
    begin: columns.begin[index]!,
    duration: Math.floor(columns.duration[index]!),
    flags: columns.flags[index]!,
  };
}

/** First row after all that the call at `index` called, directly or not. */
export function subtreeEnd(columns: Columns, index: number): number {
  const depth = columns.depth[index]!;
  let end = index + 1;
  while (end < columns.depth.length && columns.depth[end]! > depth) ++end;
  return end;
}

class RowBuilder {
  private readonly at: number[] = [];
  private readonly counts: number[] = [];
  private readonly cover: number[] = [];
  private pixel = -Infinity;

  push(columns: Columns, i: number, pixel: number, pixelNs: number): void {
    const duration = columns.duration[i]!;
    const last = this.at.length - 1;
    if (duration < pixelNs) {
      if (pixel === this.pixel && last >= 0) {
        this.counts[last]!++;
        this.cover[last]! += duration;
        if (duration > columns.duration[this.at[last]!]!) this.at[last] = i;
        return;
      }
      this.pixel = pixel;
    } else {
      this.pixel = -Infinity;
    }
    this.at.push(i);
    this.counts.push(1);
    this.cover.push(duration);
  }

  finish(columns: Columns, depth: number, pixelNs: number): Row {
    const n = this.at.length;
    const row: Row = {
      depth,
      begin: new Float64Array(n),
      duration: new Float64Array(n),
      func: new Uint32Array(n),
      index: Uint32Array.from(this.at),
      count: Uint32Array.from(this.counts),
      flags: new Uint8Array(n),
      density: new Uint8Array(n),
    };
    this.at.forEach((i, k) => {
      const summed = this.counts[k]! > 1;
      row.begin[k] = columns.begin[i]!;
      row.duration[k] = columns.duration[i]!;
      row.func[k] = columns.func[i]!;
      row.flags[k] = (columns.flags[i]! & ~kSummed) | (summed ? kSummed : 0);
      row.density[k] = summed ? Math.min(255, Math.round((this.cover[k]! / pixelNs) * 255)) : 255;
    });
    return row;
  }
}

/** What to draw of one thread in a picture `width` pixels wide; of one function alone when asked to. */
export function tileRows(columns: Columns, begin: number, end: number, width: number, only?: number): Row[] {
  const pixelNs = (end - begin) / width;
  const rows: (RowBuilder | undefined)[] = [];
  const n = columns.begin.length;
  for (let i = 0; i < n; ++i) {
    const from = columns.begin[i]!;
    if (from >= end) break;
    if (only !== undefined && columns.func[i] !== only) continue;
    const duration = columns.duration[i]!;
    const long = duration >= pixelNs;
    if (long ? from + duration <= begin && !(duration === 0 && from >= begin) : from < begin) continue;
    const pixel = long ? 0 : Math.floor((from - begin) / pixelNs);
    (rows[columns.depth[i]!] ??= new RowBuilder()).push(columns, i, pixel, pixelNs);
  }
  return rows.flatMap((row, depth) => (row ? [row.finish(columns, depth, pixelNs)] : []));
}

/** Share of time within a call, 0 to 255 for each of `width` pixels of [begin, end]. */
export function activity(columns: Columns | undefined, begin: number, end: number, width: number): Uint8Array {
  const busy = new Float64Array(width);
  const pixelNs = Math.max((end - begin) / width, 1e-9);
  if (columns) {
    for (let i = 0; i < columns.begin.length; ++i) {
      if (columns.depth[i] !== 0) continue;
      const from = (columns.begin[i]! - begin) / pixelNs;
      const to = from + columns.duration[i]! / pixelNs;
      for (let p = Math.max(0, Math.floor(from)); p < width && p < to; ++p)
        busy[p]! += Math.min(p + 1, to) - Math.max(p, from);
    }
  }
  return Uint8Array.from(busy, (share) => Math.min(255, Math.ceil(share * 255)));
}

export function callInfo(columns: Columns, at: CallRef, states?: LocalStates): CallInfo | undefined {
  const { thread, index } = at;
  if (index >= columns.begin.length) return undefined;
  const parents: CallLine[] = [];
  for (let up = columns.parent[index]!; up !== kNoParent; up = columns.parent[up]!) parents.push(line(columns, up));
  const end = subtreeEnd(columns, index);
  const children: CallLine[] = [];
  for (let i = index + 1; i < end; ++i) if (columns.parent[i] === index) children.push(line(columns, i));
  const functions = new Map<number, { function: number; calls: number; total: number; longest: number }>();
  let within = 0;
  for (const child of children) {
    within += columns.duration[child.index]!;
    const sum = functions.get(child.function);
    if (!sum) {
      functions.set(child.function, {
        function: child.function,
        calls: 1,
        total: child.duration,
        longest: child.index,
      });
      continue;
    }
    sum.calls++;
    sum.total += child.duration;
    if (child.duration > columns.duration[sum.longest]!) sum.longest = child.index;
  }
  const byTime = [...functions.values()].sort((a, b) => b.total - a.total);
  return {
    ...line(columns, index),
    thread,
    self: Math.floor(Math.max(0, columns.duration[index]! - within)),
    depth: columns.depth[index]!,
    parents: parents.slice(0, 256).reverse(),
    moreParents: Math.max(0, parents.length - 256),
    children: {
      count: children.length,
      functions: byTime.slice(0, 50),
      moreFunctions: Math.max(0, byTime.length - 50),
      longest: children.sort((a, b) => b.duration - a.duration).slice(0, 50),
    },
    subtreeCalls: end - index - 1,
    ...timesOf(columns, at, children, states),
  };
}

/** What its thread did during a call, and in the call itself. */
function timesOf(columns: Columns, { thread, index }: CallRef, children: readonly CallLine[], states?: LocalStates) {
  const own = states?.of(thread);
  if (!own || !states) return { waits: [] };
  const begin = columns.begin[index]!;
  const end = begin + columns.duration[index]!;
  const total = own.between(begin, end);
  const self = children.reduce((left, c) => minus(left, own.between(c.begin, c.begin + c.duration)), total);
  return { states: total, selfStates: self, waits: states.within(thread, begin, end) };
}

export function occurrences(threads: Map<number, Columns>, query: OccurrenceQuery): Occurrences {
  const all: (CallLine & { thread: number })[] = [];
  for (const [thread, columns] of threads)
    for (let i = 0; i < columns.func.length; ++i)
      if (columns.func[i] === query.function && isCounted(columns.flags[i]!)) all.push({ ...line(columns, i), thread });
  const place = (a: { thread: number; index: number }, b: { thread: number; index: number }) =>
    a.thread - b.thread || a.index - b.index;
  all.sort(
    query.order === "time"
      ? (a, b) => a.begin - b.begin || place(a, b)
      : (a, b) => b.duration - a.duration || a.begin - b.begin || place(a, b),
  );
  const { at, limit = 1, direction } = query;
  const here = at ? all.findIndex((c) => c.thread === at.thread && c.index === at.index) : -1;
  let calls: typeof all;
  if (direction === "next") calls = all.slice(here + 1, here + 1 + limit);
  else if (here < 0) calls = all.slice(-limit).reverse();
  else calls = all.slice(Math.max(0, here - limit), here).reverse();
  return { function: query.function, count: all.length, rank: here + 1, calls };
}

/** A call that a switch of stacks interrupted has several rows; one that a child inherited is its parent's. */
const isCounted = (flags: number): boolean => (flags & (kResumed | kInherited)) === 0;
