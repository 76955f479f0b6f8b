import { describe, expect, test } from "vitest";
import { count, duration, exact, moment, parseTime, percent, step } from "../../src/model/time";

const plain = (text: string) => text.replace(/\u202f/g, " ");

describe("lengths of time", () => {
  test.each([
    [0, "0 ns"],
    [1, "1 ns"],
    [17.5, "17.5 ns"],
    [999, "999 ns"],
    [1000, "1.000 µs"],
    [12_345, "12.35 µs"],
    [999_960, "1.000 ms"],
    [1_234_567, "1.235 ms"],
    [59_990_000_000, "59.99 s"],
    [63_500_000_000, "1 min 03.5 s"],
    [-2500, "−2.500 µs"],
  ])("%d ns is %s", (ns, text) => expect(plain(duration(ns))).toBe(text));

  test("all digits", () => expect(plain(exact(1_234_567))).toBe("1,234,567 ns"));
  test("not a number is no time", () => expect(duration(NaN)).toBe("–"));
});

test("thousands", () => {
  expect(count(0)).toBe("0");
  expect(count(999)).toBe("999");
  expect(count(1_234_567)).toBe("1,234,567");
});

test("shares", () => {
  expect(percent(0)).toBe("0.0%");
  expect(percent(0.0001)).toBe("<0.1%");
  expect(percent(0.123)).toBe("12.3%");
  expect(percent(1)).toBe("100%");
});

test("steps of the ruler are 1, 2 or 5 times a power of ten, and whole ns", () => {
  expect(step(0.01)).toBe(1);
  expect(step(3)).toBe(5);
  expect(step(100)).toBe(100);
  expect(step(101)).toBe(200);
  expect(step(6e8)).toBe(1e9);
});

describe("moments", () => {
  test("neighbours on a ruler differ, and share the unit of its end", () => {
    for (const [at, stepNs] of [
      [81e6, 1e7],
      [46_265_000, 5000],
      [12e9, 10],
      [900, 1],
    ] as const) {
      const labels = [0, 1, 2, 3].map((i) => plain(moment(at + i * stepNs, stepNs, at + 3 * stepNs)));
      expect(new Set(labels).size).toBe(4);
      expect(new Set(labels.map((l) => l.split(" ")[1])).size).toBe(1);
    }
  });
  test("zero and before", () => {
    expect(moment(0, 10)).toBe("0");
    expect(plain(moment(-5e6, 5e6, 2e7))).toBe("−5 ms");
  });
});

test("times as people write them", () => {
  expect(parseTime("1.5ms")).toBe(1_500_000);
  expect(parseTime(" 200 us ")).toBe(200_000);
  expect(parseTime("1,234 ns")).toBe(1234);
  expect(parseTime("17")).toBe(17);
  expect(parseTime("soon")).toBeUndefined();
  expect(parseTime("3 days")).toBeUndefined();
});
