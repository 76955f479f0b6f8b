import { describe, expect, test } from "vitest";
import { flameFacts } from "../../src/backend/facts";
import { matched, without } from "../../src/model/flame";

// everything > main > (serve > wait, wait), idle
const flame = flameFacts({
  total: 100,
  nodes: {
    parent: [-1, 0, 1, 2, 1, 0],
    function: [-1, 0, 1, 2, 2, 3],
    total: [100, 80, 50, 30, 10, 20],
    self: [0, 20, 20, 30, 10, 20],
    calls: [6, 1, 1, 1, 1, 1],
    merged: [0, 0, 0, 0, 0, 0],
  },
});

describe("a flame graph", () => {
  test("without a function: its callers are shorter by what it took", () => {
    const rest = without(flame, new Set([2]));
    expect([...rest.func]).toEqual([-1, 0, 1, 3]);
    expect([...rest.totals]).toEqual([60, 40, 20, 20]);
    expect([...rest.parent]).toEqual([-1, 0, 1, 0]);
    expect(rest.total).toBe(60);
    expect([...flame.totals]).toEqual([100, 80, 50, 30, 10, 20]);
  });
  test("a function inside a hidden one counts once", () => {
    expect([...without(flame, new Set([1, 2])).totals]).toEqual([40, 20, 20]);
    expect([...without(flame, new Set([0])).totals]).toEqual([20, 20]);
  });
  test("what matches is summed once, however deep it lies in itself", () => {
    expect(matched(flame, (func) => func === 2)).toBe(40);
    expect(matched(flame, (func) => func === 1 || func === 2)).toBe(60);
    expect(matched(flame, () => true)).toBe(100);
  });
});
