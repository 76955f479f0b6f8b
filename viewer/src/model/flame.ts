// Places the nodes of a flame graph: the root's width is 1, children side by side within their parent.
import type { Flame } from "../backend/types";

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
