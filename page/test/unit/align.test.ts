import { describe, expect, test } from "vitest";
import type { Alignment } from "../../src/backend/types/sums";
import { alignedChange, placeAlignment } from "../../src/model/align";

type Times = [begin: number, duration: number] | null;

function alignment(nodes: { parent: number; a: Times; b: Times }[]): Alignment {
  const side = (pick: (n: (typeof nodes)[number]) => Times) => ({
    index: Int32Array.from(nodes, (n, i) => (pick(n) ? i : -1)),
    has: Uint8Array.from(nodes, (n) => (pick(n) ? 1 : 0)),
    begin: Float64Array.from(nodes, (n) => pick(n)?.[0] ?? 0),
    duration: Float64Array.from(nodes, (n) => pick(n)?.[1] ?? 0),
  });
  const [a, b] = [side((n) => n.a), side((n) => n.b)];
  return {
    parent: Int32Array.from(nodes, (n) => n.parent),
    func: Int32Array.from(nodes, (_, i) => i),
    index: [a.index, b.index],
    has: [a.has, b.has],
    begin: [a.begin, b.begin],
    duration: [a.duration, b.duration],
    took: [a.duration, b.duration],
    extraFunctions: [],
    truncated: false,
  };
}

describe("two flows on one axis", () => {
  test("the same flow is drawn as it is, on both sides alike", () => {
    const { boxes, width } = placeAlignment(
      alignment([
        { parent: -1, a: [0, 100], b: [0, 100] },
        { parent: 0, a: [10, 20], b: [10, 20] },
        { parent: 1, a: [12, 5], b: [12, 5] },
        { parent: 0, a: [50, 40], b: [50, 40] },
      ]),
    );
    expect(width).toBe(100);
    expect(boxes.map((b) => [b.depth, b.at[0], b.at[1]])).toEqual([
      [0, [0, 100], [0, 100]],
      [1, [10, 30], [10, 30]],
      [2, [12, 17], [12, 17]],
      [1, [50, 90], [50, 90]],
    ]);
  });

  test("what took longer on one side pushes what follows on both", () => {
    const { boxes, width } = placeAlignment(
      alignment([
        { parent: -1, a: [0, 100], b: [0, 130] },
        { parent: 0, a: [10, 20], b: [10, 50] },
        { parent: 0, a: [50, 40], b: [80, 40] },
      ]),
    );
    expect(width).toBe(130);
    expect(boxes[1]!.at).toEqual([
      [10, 30],
      [10, 60],
    ]);
    expect(boxes[2]!.at).toEqual([
      [80, 120],
      [80, 120],
    ]);
  });

  test("what only one side has takes room on both, and pairs still begin together", () => {
    const { boxes } = placeAlignment(
      alignment([
        { parent: -1, a: [0, 60], b: [0, 100] },
        { parent: 0, a: null, b: [10, 40] },
        { parent: 0, a: [20, 30], b: [60, 30] },
      ]),
    );
    expect(boxes[1]!.at[0]).toBeUndefined();
    expect(boxes[2]!.at[0]![0]).toBe(boxes[2]!.at[1]![0]);
    expect(boxes[2]!.at[0]![1] - boxes[2]!.at[0]![0]).toBe(30);
  });

  test("children lie within their callers and do not overlap, whatever the times", () => {
    let state = 7;
    const below = (n: number) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % n;
    for (let round = 0; round < 50; ++round) {
      const nodes: { parent: number; a: Times; b: Times }[] = [{ parent: -1, a: [0, 1000], b: [0, 1400] }];
      const now = [0, 0];
      for (let i = 0; i < 12; ++i) {
        const time = (side: 0 | 1): Times => {
          const begin = now[side]! + below(40);
          const duration = below(40);
          now[side] = begin + duration;
          return [begin, duration];
        };
        const which = below(3);
        nodes.push({ parent: 0, a: which !== 1 ? time(0) : null, b: which !== 0 ? time(1) : null });
      }
      const { boxes } = placeAlignment(alignment(nodes));
      for (const side of [0, 1] as const) {
        let last = 0;
        const root = boxes[0]!.at[side]!;
        for (const box of boxes.slice(1)) {
          const at = box.at[side];
          if (!at) continue;
          expect(at[0]).toBeGreaterThanOrEqual(last);
          expect(at[1]).toBeLessThanOrEqual(root[1]);
          expect(at[1] - at[0]).toBeCloseTo(nodes[box.node]![side === 0 ? "a" : "b"]![1]);
          last = at[1];
        }
      }
    }
  });

  test("change is a share of the longer one", () => {
    const of = alignment([
      { parent: -1, a: [0, 10], b: [0, 40] },
      { parent: 0, a: [0, 4], b: null },
      { parent: 0, a: null, b: [0, 4] },
    ]);
    expect([0, 1, 2].map((node) => alignedChange(of, node))).toEqual([0.75, -1, 1]);
    // Without what tracing took, it is of that.
    of.took = [Float64Array.from([10, 4, 0]), Float64Array.from([20, 0, 4])];
    expect([0, 1, 2].map((node) => alignedChange(of, node))).toEqual([0.5, -1, 1]);
  });
});
