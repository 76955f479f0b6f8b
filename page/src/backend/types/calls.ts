// SPDX-License-Identifier: MIT
// Single calls: with what, how long, in which states, and where the others of their function are.

import type { CallValues, StateTimes } from "../answers";

export type { CallValues, Histogram, NamedValue, StateTimes } from "../answers";

export interface StateLine {
  index: number;
  begin: number;
  duration: number;
  /** The wait for a CPU that follows a blocking. */
  runnable: number;
  state: string;
  words: string;
  /** Blocked: the system call in which; empty: not known. */
  where: string;
  /** Who ended it, "4711 worker"; empty: not known. */
  who: string;
  /** Who had the CPU that it waited for, the longest first: "4711 worker", how long (ns), in which function mostly. */
  keptOffBy: { name: string; duration: number; function?: number }[];
  /** The call that ended the wait. */
  by?: { thread: number; index: number; function: number; depth: number };
}

/** Calls whose values are asked for at once, at most. */
export const MOST_VALUES = 500;

export interface CallRef {
  thread: number;
  index: number;
}

export interface CallLine {
  index: number;
  function: number;
  begin: number;
  duration: number;
  flags: number;
}

export interface CallInfo extends CallLine {
  thread: number;
  /** ns, as the other times below: without what tracing took, unless times as recorded were asked for. */
  took: number;
  self: number;
  depth: number;
  parents: CallLine[];
  moreParents: number;
  children: {
    count: number;
    functions: { function: number; calls: number; total: number; longest: number }[];
    moreFunctions: number;
    longest: CallLine[];
  };
  subtreeCalls: number;
  values?: CallValues;
  states?: StateTimes;
  selfStates?: StateTimes;
  waits: StateLine[];
}

export interface Occurrences {
  function: number;
  count: number;
  rank: number;
  /** `took`: without what tracing took of it, unless times as recorded were asked for. */
  calls: (CallLine & { thread: number; took: number })[];
}

export interface OccurrenceQuery {
  function: number;
  order: "time" | "duration";
  direction: "next" | "previous";
  at?: CallRef;
  limit?: number;
  /** Only calls that took from `least` to `most` ns. */
  least?: number;
  most?: number;
  /** As in Scope: what orders calls, and is meant by `least` and `most`. */
  raw?: boolean;
}
