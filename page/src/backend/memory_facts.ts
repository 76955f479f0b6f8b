// SPDX-License-Identifier: MIT
// What a call took of memory, to the page's own types.
import { callMemories, type CallMemory } from "./answers";
import { object, rowOf, type Json } from "./rows";

export const callMemory = (answer: Json): CallMemory => rowOf(object(answer), callMemories);
