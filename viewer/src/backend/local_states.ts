// Thread states in an exported page: what threads did beside their calls, from the columns of their strips.
import { kNoParent, type Columns } from "./decode";
import { callLine, stateLine, type Json } from "./facts";
import { CPU_FUNCTION, kSummed, type Row, type StateLine, type StateTimes } from "./types";

/** In columns, threads' numbers from here on are strips of their states, and CPUs. */
export const STATES_OF_THREAD = 0x80000000;
export const CPU_LANE = 0xc0000000;

const NONE: StateTimes = { cpu: 0, runnable: 0, blocked: 0, unknown: 0 };
const KINDS = ["cpu", "runnable", "blocked", "unknown"] as const; // by depth in a strip

export function minus(a: StateTimes, b: StateTimes): StateTimes {
  return {
    cpu: a.cpu - b.cpu,
    runnable: a.runnable - b.runnable,
    blocked: a.blocked - b.blocked,
    unknown: a.unknown - b.unknown,
  };
}

export function plus(a: StateTimes, b: StateTimes): StateTimes {
  return minus(a, minus(NONE, b));
}

/** One thread's states. */
export class ThreadStates {
  private readonly sums: Float64Array[];

  constructor(readonly strip: Columns) {
    this.sums = KINDS.map(() => new Float64Array(strip.begin.length + 1));
    for (let i = 0; i < strip.begin.length; ++i)
      KINDS.forEach((_, kind) => {
        this.sums[kind]![i + 1] = this.sums[kind]![i]! + (strip.depth[i] === kind ? strip.duration[i]! : 0);
      });
  }

  /** The row that lasts at `ns`, or the last that began before; -1: none. */
  at(ns: number): number {
    let low = 0;
    let high = this.strip.begin.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.strip.begin[middle]! <= ns) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  private upTo(ns: number, kind: number): number {
    const row = this.at(ns);
    if (row < 0) return 0;
    const inside = Math.min(ns - this.strip.begin[row]!, this.strip.duration[row]!);
    return this.sums[kind]![row]! + (this.strip.depth[row] === kind ? inside : 0);
  }

  between(from: number, to: number): StateTimes {
    if (to <= from) return NONE;
    const part = (kind: number) => this.upTo(to, kind) - this.upTo(from, kind);
    const times = { cpu: part(0), runnable: part(1), blocked: part(2), unknown: 0 };
    times.unknown = Math.max(0, to - from - times.cpu - times.runnable - times.blocked);
    return times;
  }
}

export class LocalStates {
  private readonly threads = new Map<number, ThreadStates>();
  private readonly waits = new Map<string, StateLine>();

  /** Takes the strips out of `columns`, and the reasons of waits. */
  constructor(columns: Map<number, Columns>, waits: readonly Json[]) {
    for (const [number, strip] of columns) {
      if (number < STATES_OF_THREAD) continue;
      if (number < CPU_LANE) this.threads.set(number - STATES_OF_THREAD, new ThreadStates(strip));
    }
    for (const wait of waits) this.waits.set(`${wait.thread}.${wait.index}`, stateLine(wait));
  }

  of(thread: number): ThreadStates | undefined {
    return this.threads.get(thread);
  }

  line(thread: number, index: number): StateLine | undefined {
    const known = this.waits.get(`${thread}.${index}`);
    if (known) return known;
    const strip = this.threads.get(thread)?.strip;
    if (!strip || index >= strip.begin.length) return undefined;
    const state = ["running", "preempted", "blocked", "unknown"][strip.depth[index]!]!;
    const words = {
      running: "running",
      preempted: "runnable, waiting for a CPU",
      blocked: "blocked",
      unknown: "not known",
    }[state]!;
    return {
      ...callLine({}),
      index,
      begin: strip.begin[index]!,
      duration: strip.duration[index]!,
      runnable: 0,
      state,
      words,
    };
  }

  /** The longest waits that begin in [begin, end). */
  within(thread: number, begin: number, end: number): StateLine[] {
    const states = this.threads.get(thread);
    if (!states) return [];
    const { strip } = states;
    const found: number[] = [];
    for (let i = Math.max(0, states.at(begin)); i < strip.begin.length && strip.begin[i]! < end; ++i) {
      const kind = strip.depth[i]!;
      if (strip.begin[i]! < begin || (kind !== 1 && kind !== 2)) continue;
      // A wait for a CPU after a blocking is told with it.
      if (kind === 1 && i > 0 && strip.depth[i - 1] === 2) continue;
      found.push(i);
    }
    found.sort((a, b) => strip.duration[b]! - strip.duration[a]! || a - b);
    return found.slice(0, 20).map((i) => this.line(thread, i)!);
  }
}

/** Which function ran on a CPU: the innermost call at the middle of each pixel of the stretches that are wide enough. */
export function cpuFunctions(
  lane: Row | undefined,
  threadOf: (task: number) => Columns | undefined,
  threadNumber: (task: number) => number,
  begin: number,
  end: number,
  pixelNs: number,
): Row[] {
  const found: { begin: number; duration: number; func: number; thread: number }[] = [];
  for (let s = 0; lane && s < lane.begin.length; ++s) {
    const columns = threadOf(lane.func[s]!);
    if (!columns || lane.flags[s]! & kSummed || lane.duration[s]! < pixelNs) continue;
    const from = Math.max(begin, lane.begin[s]!);
    const to = Math.min(end, lane.begin[s]! + lane.duration[s]!);
    let last: (typeof found)[number] | undefined;
    for (let at = from; at < to; at += pixelNs) {
      const row = innermost(columns, Math.min(at + pixelNs / 2, to));
      const func = row < 0 ? -1 : columns.func[row]!;
      const next = Math.min(at + pixelNs, to);
      if (last && last.func === func) last.duration = next - last.begin;
      else if (func < 0) last = undefined;
      else found.push((last = { begin: at, duration: next - at, func, thread: threadNumber(lane.func[s]!) }));
    }
  }
  if (found.length === 0) return [];
  return [
    {
      depth: CPU_FUNCTION,
      begin: Float64Array.from(found, (f) => f.begin),
      duration: Float64Array.from(found, (f) => f.duration),
      func: Uint32Array.from(found, (f) => f.func),
      index: Uint32Array.from(found, (f) => f.thread),
      count: new Uint32Array(found.length).fill(1),
      flags: new Uint8Array(found.length),
      density: new Uint8Array(found.length).fill(255),
    },
  ];
}

/** The innermost call that is open at `ns`; -1: none. */
export function innermost(columns: Columns, ns: number): number {
  let low = 0;
  let high = columns.begin.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (columns.begin[middle]! <= ns) low = middle + 1;
    else high = middle;
  }
  let row = low - 1;
  while (row >= 0 && columns.begin[row]! + columns.duration[row]! <= ns) {
    const up = columns.parent[row]!;
    row = up === kNoParent ? -1 : up;
  }
  return row;
}
