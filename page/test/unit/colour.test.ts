import { describe, expect, test } from "vitest";
import { contrast, functionColour, hash, mix, oklch, strongColour, word } from "../../src/model/colour";
import { DARK, labelContrast, LIGHT, Looks } from "../../src/timeline/theme";

const names = Array.from({ length: 3000 }, (_, i) => `ns${i % 7}::Class${i % 31}::method_${i}(int)`);

test("a function's colour is the same whenever it is asked for", () => {
  expect(functionColour("main", "light")).toEqual(functionColour("main", "light"));
  expect(hash("main")).toBe(hash("main"));
  expect(hash("main")).not.toBe(hash("mainn"));
});

test("hues spread evenly: no tenth of the circle has more than twice its share", () => {
  const tenths = new Array<number>(10).fill(0);
  for (const name of names) tenths[Math.floor(((hash(name) & 0xffff) / 65536) * 10)]!++;
  for (const n of tenths) expect(n).toBeLessThan((names.length / 10) * 2);
});

describe("labels can be read on every call", () => {
  test.each([LIGHT, DARK])("$theme: contrast 7:1", (inks) => {
    for (const name of names) expect(labelContrast(name, inks)).toBeGreaterThan(7);
  });
  test("highlighted: contrast 7:1", () => {
    for (const name of names) expect(contrast(strongColour(name), { r: 11, g: 14, b: 18 })).toBeGreaterThan(7);
  });
});

test("known colours of OKLCH", () => {
  expect(oklch(1, 0, 0)).toEqual({ r: 255, g: 255, b: 255 });
  expect(oklch(0, 0, 0)).toEqual({ r: 0, g: 0, b: 0 });
  const red = oklch(0.62796, 0.25768, 29.234);
  expect([red.r, red.g, red.b].map((v, i) => Math.abs(v - [255, 0, 0][i]!) <= 1)).toEqual([true, true, true]);
});

test("words are in the byte order of ImageData", () => {
  const bytes = new Uint8Array(Uint32Array.of(word({ r: 1, g: 2, b: 3 })).buffer);
  expect([...bytes]).toEqual([1, 2, 3, 255]);
});

test("dimmed calls are closer to the ground than the others", () => {
  for (const inks of [LIGHT, DARK]) {
    const looks = new Looks(["a", "b", "c"], inks);
    const away = (value: number) => Math.abs((value & 255) - inks.background.r);
    for (let i = 0; i < 3; ++i) expect(away(looks.dimmed.fill[i]!)).toBeLessThan(away(looks.full.fill[i]!) + 1);
  }
  expect(mix({ r: 255, g: 0, b: 0 }, { r: 0, g: 0, b: 0 }, 0.5)).toEqual({ r: 128, g: 0, b: 0 });
});
