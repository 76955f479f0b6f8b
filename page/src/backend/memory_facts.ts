// What a call took of memory, to the page's own types.
import { num, object, objects, type Json } from "./facts";
import type { CallMemory, TakenSum } from "./types/memory";

const takenSum = (json: Json): TakenSum => ({
  ...{ allocations: num(json.allocations), bytes: num(json.bytes), bytesMargin: num(json.bytes_margin) },
  ...{ left: num(json.left), leftBytes: num(json.left_bytes), leftMargin: num(json.left_margin) },
  unknown: num(json.unknown),
});

export function callMemory(answer: Json): CallMemory {
  const json = object(answer);
  return {
    ...takenSum(json),
    sampled: num(json.sampled),
    whole: json.whole !== false,
    functions: objects(json.functions).map((of) => ({ function: num(of.function), ...takenSum(of) })),
    moreFunctions: num(json.more_functions),
  };
}
