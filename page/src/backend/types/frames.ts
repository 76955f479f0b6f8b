// Frames: what a program does again and again, like drawing a picture, and how long each time took.
import type { Histogram } from "./calls";

/** Frames of one name in one process; they have a track. */
export interface FrameSet {
  /** Id of its track. */
  track: number;
  process: number;
  name: string;
  count: number;
}

export interface FrameList {
  /** The main ones first. */
  sets: FrameSet[];
  /** Names without a track. */
  more: number;
}

export interface FrameLine {
  /** From 1 on, where the history begins. */
  number: number;
  begin: number;
  duration: number;
  /** Both ends have a mark: nobody marked where the first frame begins. */
  marked: boolean;
}

/** What a frame showed, compressed as BC1 has it: two words for each 4 times 4 pixels, line by line. */
export interface FramePicture {
  width: number;
  height: number;
  words: Uint32Array;
}

/** All frames of a set, and one of them. */
export interface FrameFacts {
  /** Longer than the target. */
  over: number;
  /** Of those that have marks at both ends. */
  durations: Histogram;
  slowest: FrameLine[];
  /** Null: none was asked about. */
  frame: FrameLine | null;
  /** Over the target, before it and after it. */
  previous: FrameLine | null;
  next: FrameLine | null;
  /** Of the one. */
  picture?: FramePicture;
}
