// SPDX-License-Identifier: MIT
// Lists that a kind of track is made of, and that the page asks for late (model/late.ts).
import type { Json } from "../facts";
import type { TraceInfo } from "./trace";

export interface LateList<Of> {
  /** The question: api/PATH. */
  readonly path: string;
  readonly read: (answer: Json) => Of;
  /** Whether a trace may have any. */
  readonly has: (info: TraceInfo) => boolean;
}
