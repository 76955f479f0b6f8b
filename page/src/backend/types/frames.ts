// SPDX-License-Identifier: MIT
// Frames: what a program does again and again, like drawing a picture, and how long each time took.
import type { FrameAnswer, Histogram } from "../answers";

export type { FrameLine, FrameList } from "../answers";

/** Two words for each 4 times 4 pixels, line by line. */
export interface FramePicture {
  width: number;
  height: number;
  words: Uint32Array;
}

/** All frames of a set, and one of them. */
export interface FrameFacts extends Omit<FrameAnswer, "picture" | "durations"> {
  durations: Histogram;
  picture: FramePicture | null;
}
