// SPDX-License-Identifier: MIT
// Single calls: with what, how long, in which states, and where the others of their function are.

import type { CallInfo } from "../answers";

export type { CallInfo, CallLine, Histogram, NamedValue, Occurrences, StateLine, StateTimes } from "../answers";

/** What a call was given and what it returned. */
export type CallValues = Pick<CallInfo, "arguments" | "returned">;

/** Calls whose values are asked for at once, at most. */
export const MOST_VALUES = 500;

export interface CallRef {
  thread: number;
  index: number;
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
