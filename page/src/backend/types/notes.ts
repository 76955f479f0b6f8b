// SPDX-License-Identifier: MIT
// What a program said of itself: messages, and values that are plotted.

import type { NOTE_GROUPS } from "../protocol";

/** Of notes. "other": also kinds of a later version. */
export type NoteGroup = (typeof NOTE_GROUPS)[number];

/** What a program said of itself. */
export interface NoteLine {
  time: number;
  thread: number; // in TraceInfo.threads
  kind: string;
  group: NoteGroup;
  /** All of it in one line, with whatever characters the program's text has. */
  line: string;
  /** The call in which it was said; left out: the thread was in none. */
  index?: number;
  function?: number;
  /** 0xrrggbb: of a message, if the program gave it one. */
  colour?: number;
}

/** The notes of a thread that share a pixel: how many, and the first of them. */
export interface NoteMark extends NoteLine {
  count: number;
  /** The time of the last one. */
  last: number;
}

export interface NoteQuery {
  /** A part of what they say; empty: whatever. */
  text: string;
  /** Left out: all. */
  groups?: readonly NoteGroup[];
  newest: boolean;
  limit: number;
}

/** Values of one name, of all threads of a process. */
export interface PlotInfo {
  process: number;
  name: string;
  count: number;
  min: number;
  max: number;
  unit?: string;
  /** From value to value; else steps. */
  line?: true;
  /** 0xrrggbb: the program's wish. */
  colour?: number;
  /** Not said by the program, but read of the system. */
  usage?: "machine" | "process";
}

/** Calls that the program gave a colour (0xrrggbb), by column. */
export interface ColouredCalls {
  thread: number[];
  index: number[];
  begin: number[];
  duration: number[];
  depth: number[];
  colour: number[];
}

/** How they go in a picture: columns, by pixel that has some. */
export interface PlotPart {
  plot: number;
  /** When the picture begins; null: there was none yet. */
  before: number | null;
  at: number[];
  count: number[];
  min: number[];
  max: number[];
  last: number[];
}
