// SPDX-License-Identifier: MIT
// Calls that the program gave a colour (karst_color): painted over what their functions look like.
import type { Backend } from "../backend/types/backend";
import type { TraceInfo } from "../backend/types/trace";
import { tonedColour, word, type Theme } from "../model/colour";
import { edgeOf } from "./theme";
import { bucketOf, ViewAnswer, type Buckets } from "./view_answer";

interface ColouredCall {
  readonly begin: number;
  readonly end: number;
  /** 0xrrggbb */
  readonly colour: number;
}

/** Of one trace: by thread, by depth. What was said last comes last. */
type ByDepth = ReadonlyMap<number, readonly ColouredCall[]>;

/** How a backend is asked. */
function asking(backend: Backend) {
  return async ({ begin, end, bucketNs }: Buckets, _: number, threads: readonly number[], signal: AbortSignal) => {
    const found = new Map<number, Map<number, ColouredCall[]>>();
    const calls = await backend.colours({ begin, end, threads }, bucketNs / 2, signal);
    calls.thread.forEach((thread, i) => {
      const begin = calls.begin[i]!;
      const call = { begin, end: begin + calls.duration[i]!, colour: calls.colour[i]! };
      const depth = calls.depth[i]!;
      const of = found.get(thread) ?? new Map<number, ColouredCall[]>();
      found.set(thread, of);
      const row = of.get(depth);
      if (row) row.push(call);
      else of.set(depth, [call]);
    });
    return found;
  };
}

export class CallColours {
  private readonly answer: ViewAnswer<ReadonlyMap<number, ByDepth>>;

  constructor(backend: Backend, info: TraceInfo, onChange: () => void) {
    this.answer = new ViewAnswer(info.extent, asking(backend), onChange);
  }

  /** A later reading of the trace answers from now on. */
  renew(backend: Backend, info: TraceInfo): void {
    this.answer.renew(info.extent, asking(backend));
  }

  get complete(): boolean {
    return this.answer.complete;
  }

  /** What the next picture shows: a range in the trace's own time, pixels of that length, and threads with colours. */
  want(begin: number, end: number, pixelNs: number, threads: readonly number[]): void {
    this.answer.want(begin, end, bucketOf(pixelNs, 1), threads);
  }

  /** Paints a row of calls; `begin` and `pixel` are of the row's time. */
  paint(line: Uint32Array, thread: number, depth: number, begin: number, pixel: number, theme: Theme): void {
    const calls = this.answer.kept?.value.get(thread)?.get(depth);
    for (const call of calls ?? []) {
      const left = Math.round((call.begin - begin) / pixel);
      const right = Math.round((call.end - begin) / pixel);
      if (right <= left || right <= 0 || left >= line.length) continue;
      const colour = tonedColour(call.colour, theme);
      line.fill(word(colour), Math.max(0, left), Math.min(line.length, right));
      if (right - left >= 3 && right <= line.length) line[right - 1] = word(edgeOf(colour, theme));
    }
  }
}
