// SPDX-License-Identifier: MIT
// Time in a narrow strip, with what was overwritten folded. A ring that was written many times over keeps moments of
// milliseconds in minutes of nothing; drawn true to scale, there would be nothing to see.
import type { TraceInfo } from "../backend/types/trace";
import type { Range } from "./store";

const LEAST = 0.02; // of all time: shorter stretches are left as they are
const FOLDED = 14; // pixels of a folded stretch
const MOST = 0.4; // of the width, for all of them

type Threads = { readonly info: Pick<TraceInfo, "threads"> };

/**
 * Where each thread whose history was overwritten has none; in order. Threads that were kept whole do not count: they wrote
 * little. `offset`: of the second trace.
 */
export function overwritten(traces: readonly Threads[], offset: number, total: number): Range[] {
  const edges: [number, number][] = []; // when, and how many threads more are known from then on
  let until = 0;
  traces.forEach(({ info }, t) => {
    const move = t === 1 ? offset : 0;
    for (const thread of info.threads) {
      const gaps = thread.gaps.filter((gap) => gap.kind === "overwritten");
      if (gaps.length === 0) continue;
      let from = thread.begin;
      for (const gap of [...gaps, { begin: thread.last, end: thread.last }]) {
        if (gap.begin > from) edges.push([from + move, 1], [gap.begin + move, -1]);
        from = Math.max(from, gap.end);
      }
      until = Math.max(until, thread.last + move);
    }
  });
  edges.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const found: Range[] = [];
  let known = 0;
  let from = 0;
  for (const [at, more] of [...edges, [Math.min(until, total), 1] as const]) {
    if (known === 0 && more > 0 && at - from >= total * LEAST) found.push({ begin: from, end: at });
    known += more;
    if (known === 0) from = at;
  }
  return found;
}

/** Between times and pixels of a strip `width` wide. Without folds it is true to scale. */
export class Fold {
  private readonly ns: number[] = [0];
  private readonly x: number[] = [0];

  constructor(
    readonly folded: readonly Range[],
    total: number,
    width: number,
  ) {
    const each = folded.length > 0 ? Math.min(FOLDED, (width * MOST) / folded.length) : 0;
    const open = total - folded.reduce((sum, { begin, end }) => sum + end - begin, 0);
    const scale = open > 0 ? (width - each * folded.length) / open : 0;
    const add = (ns: number, x: number) => {
      if (ns <= this.ns.at(-1)!) return;
      this.ns.push(ns);
      this.x.push(x);
    };
    for (const { begin, end } of folded) {
      add(begin, this.x.at(-1)! + (begin - this.ns.at(-1)!) * scale);
      add(end, this.x.at(-1)! + each);
    }
    add(total, width);
  }

  toX = (ns: number): number => between(ns, this.ns, this.x);
  toNs = (x: number): number => between(x, this.x, this.ns);
}

/** Linear between the points, and beyond the ends as in the last stretch before them. */
function between(at: number, from: readonly number[], to: readonly number[]): number {
  let i = 1;
  while (i < from.length - 1 && at > from[i]!) ++i;
  const span = (from[i] ?? 1) - from[i - 1]!;
  return to[i - 1]! + (span > 0 ? ((at - from[i - 1]!) / span) * ((to[i] ?? 0) - to[i - 1]!) : 0);
}
