// What calls took of memory.

/** Numbers and bytes; estimates where allocations were sampled. */
export interface TakenSum {
  allocations: number;
  bytes: number;
  /** How far `bytes` may be off: 95 of 100 estimates are within. */
  bytesMargin: number;
  /** Not freed by the end of the call. */
  left: number;
  leftBytes: number;
  leftMargin: number;
  /** Recorded ones of which nobody knows whether they were. */
  unknown: number;
}

export interface CallMemory extends TakenSum {
  /** One allocation in so many bytes was recorded; 0: all. */
  sampled: number;
  /** False: the trace has not all of the call, and only what it has is counted. */
  whole: boolean;
  /** Those that took most themselves, within the call. */
  functions: (TakenSum & { function: number })[];
  moreFunctions: number;
}
