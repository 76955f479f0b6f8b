// SPDX-License-Identifier: MIT
// What calls took of memory: numbers and bytes, estimates where allocations were sampled.
export type { CallMemory, Taker } from "../answers";
