// SPDX-License-Identifier: MIT
// What a page shows that follows a recording.
import { expect, test } from "vitest";
import { newestView, Pace } from "../../src/model/following";

test("the newest part is as wide as what was seen", () => {
  const view = newestView({ begin: 5e9, span: 2e9 }, 30e9);
  expect(view.span).toBe(2e9);
  expect(view.begin + view.span).toBeGreaterThan(30e9);
  expect(view.begin + view.span).toBeLessThan(30.1e9);
});

test("of a whole trace it is at most its last ten seconds", () => {
  const view = newestView({ begin: -1e9, span: 102e9 }, 100e9);
  expect(view.span).toBe(10e9);
  expect(view.begin).toBeGreaterThan(90e9);
});

test("a short trace is seen whole", () => {
  const view = newestView({ begin: 0, span: 60e9 }, 3e9);
  expect(view.begin).toBeLessThanOrEqual(0);
  expect(view.begin + view.span).toBeGreaterThanOrEqual(3e9);
});

test("the newest time goes on steadily, and never beyond what is known", () => {
  const pace = new Pace(10e9, 0);
  expect(pace.now(500)).toBe(10e9);
  pace.reach(11e9, 1000, 1000);
  expect(pace.now(1500)).toBe(10.5e9);
  // Earlier than expected: it goes on from where it is.
  pace.reach(12e9, 1000, 1500);
  expect(pace.now(1500)).toBe(10.5e9);
  expect(pace.now(2000)).toBe(11.25e9);
  expect(pace.now(9000)).toBe(12e9);
});
