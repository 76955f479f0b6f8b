import { describe, expect, test } from "vitest";
import {
  between,
  clampView,
  fit,
  NARROWEST_NS,
  pan,
  reveal,
  toPixel,
  toTime,
  wholeView,
  zoom,
} from "../../src/model/view";

const TOTAL = 1e9;

test("the moment under the pointer stays where it is while zooming", () => {
  const view = { begin: 2e8, span: 3e8 };
  for (const at of [0, 0.25, 0.5, 1])
    for (const factor of [0.5, 0.9, 1.2]) {
      const after = zoom(view, factor, at, TOTAL);
      expect(after.begin + after.span * at).toBeCloseTo(view.begin + view.span * at, 3);
    }
});

test("no view is narrower than can be told, nor wider than the trace and a little", () => {
  expect(zoom({ begin: 0, span: 100 }, 1e-9, 0.5, TOTAL).span).toBe(NARROWEST_NS);
  expect(zoom({ begin: 0, span: 1e8 }, 1e9, 0.5, TOTAL).span).toBeLessThanOrEqual(TOTAL * 1.1);
});

test("the trace cannot be lost by moving", () => {
  let view = wholeView(TOTAL);
  for (let i = 0; i < 100; ++i) view = pan(view, 1, TOTAL);
  expect(view.begin).toBeLessThan(TOTAL);
  for (let i = 0; i < 100; ++i) view = pan(view, -1, TOTAL);
  expect(view.begin + view.span).toBeGreaterThan(0);
});

describe("fit and reveal", () => {
  test("a call in the middle takes four fifths", () => {
    const view = fit(4e8, 5e8, TOTAL);
    expect(toPixel(view, 4e8, 1000)).toBeCloseTo(100, 3);
    expect(toPixel(view, 5e8, 1000)).toBeCloseTo(900, 3);
  });
  test("at the trace's ends little is beside it", () => {
    const view = fit(0, 5e8, TOTAL);
    expect(view.begin).toBeGreaterThan(-view.span * 0.03);
    expect(view.begin).toBeLessThanOrEqual(0);
  });
  test("a call of 0 ns can be fitted", () => expect(fit(5, 5, TOTAL).span).toBeGreaterThanOrEqual(NARROWEST_NS));
  test("what is seen stays where it is", () => {
    const view = { begin: 0, span: 1e6 };
    expect(reveal(view, 1e5, 2e5, TOTAL)).toBe(view);
  });
  test("what is outside comes to the middle at the same zoom", () => {
    const view = reveal({ begin: 0, span: 1e6 }, 5e8, 5e8 + 1e5, TOTAL);
    expect(view.span).toBe(1e6);
    expect(toPixel(view, 5e8 + 5e4, 1000)).toBeCloseTo(500, 3);
  });
  test("what would be less than some pixels is zoomed to", () => {
    expect(reveal({ begin: 0, span: 1e9 }, 5e8, 5e8 + 100, TOTAL).span).toBeLessThan(1e5);
  });
});

test("pixels and moments are inverse", () => {
  const view = { begin: 12345, span: 987 };
  expect(toTime(view, toPixel(view, 12800, 1920), 1920)).toBeCloseTo(12800, 6);
});

test("animation starts and ends where it should", () => {
  const from = { begin: 0, span: 1e6 };
  const to = { begin: 5e8, span: 1e3 };
  expect(between(from, to, 0).span).toBeCloseTo(from.span, 3);
  expect(between(from, to, 1)).toBe(to);
  expect(between({ begin: 0, span: 10 }, { begin: 100, span: 10 }, 0.5)).toEqual({ begin: 50, span: 10 });
});

test("a trace of nothing has a view", () => {
  const view = clampView(wholeView(0), 0);
  expect(view.span).toBeGreaterThan(0);
  expect(Number.isFinite(view.begin)).toBe(true);
});
