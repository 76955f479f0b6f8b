// SPDX-License-Identifier: MIT
// Answers about frames to the page's own types.
import { frameAnswers, type FrameAnswer } from "./answers";
import { histogramFacts, object, type Json } from "./facts";
import { rowOf } from "./rows";
import type { FrameFacts, FramePicture } from "./types/frames";

const MOST_PIXELS = 16384;

/** Nothing where the words are not as many as the pixels need. */
function pictureFacts({ picture }: FrameAnswer): FramePicture | null {
  const { width, height, words } = picture ?? { width: 0, height: 0, words: [] };
  const blocks = (width / 4) * (height / 4);
  return Number.isInteger(blocks) && blocks > 0 && width * height <= MOST_PIXELS && words.length === 2 * blocks
    ? { width, height, words: Uint32Array.from(words) }
    : null;
}

export function frameFacts(answer: Json): FrameFacts {
  const facts = rowOf(object(answer), frameAnswers);
  return { ...facts, durations: facts.durations ?? histogramFacts({}), picture: pictureFacts(facts) };
}
