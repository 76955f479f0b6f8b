import { describe, expect, test } from "vitest";
import { traceFacts } from "../../src/backend/facts";
import { Fold, overwritten } from "../../src/model/fold";

const gap = (begin: number, end: number, kind = "overwritten") => ({ begin, end, kind, blocks: 1 });
const of = (...threads: object[]) => [{ info: traceFacts({ span: 1000, extent: 1000, threads }) }];

describe("what is folded", () => {
  test("where all threads that wrapped have nothing; those that were kept whole do not count", () => {
    const wrapped = { begin: 0, last: 1000, gaps: [gap(0, 500), gap(520, 900)] };
    const other = { begin: 0, last: 1000, gaps: [gap(100, 700)] };
    const whole = { begin: 0, last: 1000 };
    expect(overwritten(of(wrapped, whole), 0, 1000)).toEqual([
      { begin: 0, end: 500 },
      { begin: 520, end: 900 },
    ]);
    expect(overwritten(of(wrapped, other), 0, 1000)).toEqual([
      { begin: 100, end: 500 },
      { begin: 520, end: 700 },
    ]);
  });
  test("not what is lost, what is short, and traces without gaps", () => {
    expect(overwritten(of({ begin: 0, last: 1000, gaps: [gap(0, 500, "missing")] }), 0, 1000)).toEqual([]);
    expect(overwritten(of({ begin: 0, last: 1000, gaps: [gap(0, 19)] }), 0, 1000)).toEqual([]);
    expect(overwritten(of({ begin: 0, last: 1000 }), 0, 1000)).toEqual([]);
  });
});

describe("a strip with folds", () => {
  test("is true to scale without any", () => {
    const fold = new Fold([], 1000, 500);
    expect([0, 100, 1000, -100].map(fold.toX)).toEqual([0, 50, 500, -50]);
    expect([0, 50, 500].map(fold.toNs)).toEqual([0, 100, 1000]);
  });
  test("gives kept time the room, and goes back", () => {
    const fold = new Fold(
      [
        { begin: 0, end: 480 },
        { begin: 500, end: 980 },
      ],
      1000,
      500,
    );
    expect(fold.toX(480)).toBe(14);
    expect(fold.toX(500)).toBe(14 + 236);
    expect(fold.toX(1000)).toBe(500);
    for (const x of [0, 5, 14, 100, 255, 300, 499.5])
      expect(fold.toNs(x) === 0 ? 0 : fold.toX(fold.toNs(x))).toBeCloseTo(x, 6);
    for (let x = 0; x < 500; ++x) expect(fold.toNs(x + 1)).toBeGreaterThan(fold.toNs(x));
  });
  test("folds share two fifths at most, also when nothing else is there", () => {
    const folded = Array.from({ length: 49 }, (_, i) => ({ begin: i * 20, end: i * 20 + 20 }));
    expect(new Fold(folded, 1000, 100).toX(980)).toBeCloseTo(40, 6);
    expect(Number.isFinite(new Fold([{ begin: 0, end: 1000 }], 1000, 100).toX(500))).toBe(true);
    expect(Number.isFinite(new Fold([], 1000, 0).toNs(10))).toBe(true);
  });
});
