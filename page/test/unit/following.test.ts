// SPDX-License-Identifier: MIT
// What a page shows that follows a recording.
import { expect, test } from "vitest";
import { newestView } from "../../src/model/following";

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
