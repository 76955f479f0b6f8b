// SPDX-License-Identifier: MIT
// What many calls add up to: by function, path, request or thread, and how two flows differ.
import type { Scope } from "./backend";

export type { FunctionRow, FunctionTable, ThreadSums } from "../answers";

export interface Flame {
  total: number;
  calls: number;
  truncated: boolean;
  parent: Int32Array;
  func: Int32Array; // -1 root, -2 merged
  totals: Float64Array;
  selfs: Float64Array;
  counts: Float64Array;
  merged: Float64Array;
  /** When two sets of calls are compared. */
  b?: { total: number; totals: Float64Array; selfs: Float64Array; counts: Float64Array };
  extraFunctions: string[];
}

/** What a flame graph adds up, and a minimap shows. */
export type TimeOf = "cpu" | "runnable" | "blocked";

export interface FlameQuery {
  inverted?: boolean;
  path?: readonly number[];
  /** Left out: all time. */
  by?: TimeOf;
  /** A second set of calls to compare with. */
  b?: Scope & { trace?: number };
}

/** Two flows, call by call: columns by side, then by node; parents come before their children. */
export interface Alignment {
  parent: Int32Array;
  func: Int32Array; // -1: all of a thread
  index: [Int32Array, Int32Array]; // -1: no row
  has: [Uint8Array, Uint8Array];
  begin: [Float64Array, Float64Array]; // since the root's begin
  duration: [Float64Array, Float64Array]; // as recorded
  took: [Float64Array, Float64Array]; // without what tracing took, unless times as recorded were asked for
  extraFunctions: string[];
  truncated: boolean;
}

/** A call, or all of a thread. */
export interface AlignSide {
  trace: number;
  thread: number;
  index?: number;
}
