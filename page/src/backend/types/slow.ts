// Calls that took longer than usual, and why.
import type { StateTimes, StateLine, CallLine } from "./calls";

/** A call that took far longer than its function usually does. */
export interface Outlier extends CallLine {
  thread: number;
  depth: number;
  /** Without what tracing took of it, ns, as all times of these but `duration`. */
  took: number;
  /** What its function usually takes, ns. */
  usual: number;
  /** Such calls of its function, this one included, and how long all of them took. */
  calls: number;
  total: number;
  /** From its callee down to where most of the time went. */
  path: { index: number; function: number; took: number }[];
  states?: StateTimes;
  wait?: StateLine;
}

export interface Outliers {
  found: number;
  /** By thread: the greatest time beyond the usual, ns. */
  excess: number[];
  /** The greatest excess first. */
  slow: Outlier[];
}

/** A difference between a call and the usual ones, and how much of its excess it is. */
export interface Cause {
  kind: string;
  /** Names of functions, from the call's callee down; empty: the call itself. */
  path: string[];
  /** The same as numbers of TraceInfo.functions; -1: it has none. */
  functions: number[];
  place: string;
  what: string;
  excess: number;
  share: number;
  /** Who was waited for meanwhile, in words. */
  chain: string[];
  /** What calls on its path were given or returned that is not usual, in words. */
  values: string[];
  waited?: StateLine;
  /** Of the path the longest call, or the one that waited; left out: the explained call has none. */
  at?: CallLine & { depth: number };
}

/** Why a call took longer than others of its function. Times without the tracer's own. */
export interface Explanation {
  thread: number;
  index: number;
  headline: string;
  duration: number;
  usual: number;
  siblings: number;
  typical: number;
  first: boolean;
  standsOut: boolean;
  excess: number;
  /** What the call was given or returned that is not usual, in words. */
  values: string[];
  causes: Cause[];
  rest: number;
  restShare: number;
  /** What a call costs with the tracer, ns; 0: not known. */
  callCost: number;
  /** How far a call's time may be off for it, ns; 0: not known. */
  callCostOffBy: number;
}
