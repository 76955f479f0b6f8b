// SPDX-License-Identifier: MIT
// What the timeline draws: rows of slices, by lane and tile.

export {
  kCut,
  kInherited,
  kJumped,
  kLeft,
  kOpenBegin,
  kOpenEnd,
  kResumed,
  kSummed,
  kTailCall,
  kUnwound,
} from "../protocol";

/** Lanes of a thread's states, and of a CPU. */
export const STRIP_DEPTHS = ["running", "runnable", "blocked", "unknown"] as const;
export const CPU_THREAD = 0;
export const CPU_FUNCTION = 1;

/** The slices of one lane of one track within a tile; columns of equal length, sorted by begin. */
export interface Row {
  depth: number;
  begin: Float64Array;
  duration: Float64Array;
  func: Uint32Array;
  index: Uint32Array;
  count: Uint32Array;
  flags: Uint8Array;
  density: Uint8Array;
}

/** Lanes of one track, both ends included. */
export interface Levels {
  track: number;
  from: number;
  to: number;
}

export interface TileRequest {
  begin: number;
  end: number;
  width: number;
  levels: readonly Levels[];
  /** Only calls of this function. */
  function?: number;
}
