// SPDX-License-Identifier: MIT
// Places the nodes of a flame graph: the root's width is 1, children side by side within their parent.
import type { Flame } from "../backend/types/sums";

export interface Cell {
  readonly node: number;
  readonly depth: number;
  readonly x: number;
  readonly width: number;
}

/** Cells at least `least` wide, parents before children. With two sets of calls, widths are those of both together. */
export function placeFlame(flame: Flame, least: number): Cell[] {
  const n = flame.parent.length;
  const weight = (node: number) => flame.totals[node]! + (flame.b?.totals[node] ?? 0);
  const whole = n > 0 ? weight(0) : 0;
  const cells: Cell[] = [];
  if (whole <= 0) return cells;
  const cellOf: (Cell | undefined)[] = new Array(n);
  const next = new Float64Array(n);
  for (let node = 0; node < n; ++node) {
    const up = flame.parent[node]!;
    const above = up < 0 ? undefined : cellOf[up];
    if (up >= 0 && !above) continue;
    const width = weight(node) / whole;
    const x = above ? next[up]! : 0;
    if (above) next[up] = x + width;
    if (width < least) continue;
    const cell = { node, depth: above ? above.depth + 1 : 0, x, width };
    next[node] = x;
    cellOf[node] = cell;
    cells.push(cell);
  }
  return cells;
}

/** Functions from the root (not included) to a node. */
export function pathTo(flame: Flame, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at > 0; at = flame.parent[at]!) path.push(flame.func[at]!);
  return path.reverse();
}

/** How much longer B is than A at a node, -1 (only in A) to 1 (only in B). */
export function change(flame: Flame, node: number): number {
  const a = flame.totals[node]!;
  const b = flame.b?.totals[node] ?? 0;
  return a + b === 0 ? 0 : (b - a) / Math.max(a, b);
}

/** A flame graph without some functions: what they took, callees included, is gone from their callers too. */
export function without(flame: Flame, hidden: ReadonlySet<number>): Flame {
  if (hidden.size === 0) return flame;
  const n = flame.parent.length;
  const gone = new Uint8Array(n);
  const copies = { totals: flame.totals.slice(), counts: flame.counts.slice() };
  const b = flame.b && { ...flame.b, totals: flame.b.totals.slice(), counts: flame.b.counts.slice() };
  for (let node = 1; node < n; ++node) {
    const up = flame.parent[node]!;
    gone[node] = gone[up] ? 2 : hidden.has(flame.func[node]!) ? 1 : 0;
    // Subtrees that are hidden count once: at their top.
    if (gone[node] === 1)
      for (let at = up; at >= 0; at = flame.parent[at]!) {
        copies.totals[at]! -= flame.totals[node]!;
        if (b) b.totals[at]! -= flame.b!.totals[node]!;
      }
  }
  const keep = [...flame.parent.keys()].filter((node) => !gone[node]);
  const place = new Int32Array(n);
  keep.forEach((node, i) => (place[node] = i));
  const ints = (column: Int32Array) => Int32Array.from(keep, (node) => column[node]!);
  const floats = (column: Float64Array) => Float64Array.from(keep, (node) => column[node]!);
  const parent = Int32Array.from(keep, (node) => (flame.parent[node]! < 0 ? -1 : place[flame.parent[node]!]!));
  const result: Flame = {
    ...flame,
    total: copies.totals[0] ?? 0,
    ...{ parent, func: ints(flame.func), totals: floats(copies.totals), selfs: floats(flame.selfs) },
    ...{ counts: floats(copies.counts), merged: floats(flame.merged) },
  };
  if (b)
    result.b = {
      ...{ total: b.totals[0] ?? 0, totals: floats(b.totals), selfs: floats(b.selfs), counts: floats(b.counts) },
    };
  return result;
}

/** Time in nodes whose function `matches`, each moment once. */
export function matched(flame: Flame, matches: (func: number) => boolean): number {
  const inside = new Uint8Array(flame.parent.length);
  let sum = 0;
  for (let node = 1; node < inside.length; ++node) {
    const above = inside[flame.parent[node]!]!;
    inside[node] = above || (flame.func[node]! >= 0 && matches(flame.func[node]!)) ? 1 : 0;
    if (inside[node] && !above) sum += flame.totals[node]!;
  }
  return sum;
}
