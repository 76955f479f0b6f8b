// SPDX-License-Identifier: MIT
// Lays two aligned flows out on one axis: what is a pair begins at the same place, what only one side has takes room on
// both. Distances are ns of whichever side took longer, so either side is to scale but for the slack it gets.
import type { Alignment } from "../backend/types/sums";

export interface AlignedBox {
  readonly node: number;
  readonly depth: number;
  /** By side: from where to where, in ns of the common axis; undefined when the side has no such call. */
  readonly at: readonly [readonly [number, number] | undefined, readonly [number, number] | undefined];
}

export function placeAlignment(of: Alignment): { boxes: AlignedBox[]; width: number } {
  const n = of.parent.length;
  const children: number[][] = Array.from({ length: n }, () => []);
  for (let i = 1; i < n; ++i) children[of.parent[i]!]?.push(i);
  const boxes: AlignedBox[] = [];
  const place = (node: number, from: number, depth: number): number => {
    const now = [of.begin[0][node]!, of.begin[1][node]!];
    const last = [from, from]; // where `now` lies on the axis
    let x = from;
    const box: AlignedBox & { at: [[number, number] | undefined, [number, number] | undefined] } = {
      node,
      depth,
      at: [undefined, undefined],
    };
    boxes.push(box);
    for (const child of children[node]!) {
      let gap = 0;
      for (const side of [0, 1] as const)
        if (of.has[side][child]) gap = Math.max(gap, of.begin[side][child]! - now[side]! - (x - last[side]!));
      x = place(child, x + Math.max(0, gap), depth + 1);
      for (const side of [0, 1] as const) {
        if (!of.has[side][child]) continue;
        now[side] = of.begin[side][child]! + of.duration[side][child]!;
        last[side] = x;
      }
    }
    let end = x;
    for (const side of [0, 1] as const) {
      if (!of.has[side][node]) continue;
      const rest = of.begin[side][node]! + of.duration[side][node]! - now[side]!;
      const to = Math.max(x, last[side]! + Math.max(0, rest));
      box.at[side] = [from, to];
      end = Math.max(end, to);
    }
    return end;
  };
  const width = n > 0 ? place(0, 0, 0) : 0;
  return { boxes, width };
}

/** How much longer B took, as a share of the longer one: -1 (only in A) to 1 (only in B). */
export function alignedChange(of: Alignment, node: number): number {
  const a = of.has[0][node] ? of.took[0][node]! : 0;
  const b = of.has[1][node] ? of.took[1][node]! : 0;
  const most = Math.max(a, b);
  return most > 0 ? (b - a) / most : 0;
}
