import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { contrast } from "../../src/model/colour";
import { DARK, LIGHT } from "../../src/timeline/theme";

const css = readFileSync(new URL("../../src/style/base.css", import.meta.url), "utf8");

function rgb(hex: string) {
  const value = parseInt(hex.slice(1), 16);
  return { r: value >> 16, g: (value >> 8) & 255, b: value & 255 };
}

/** The custom properties of one theme that are plain colours. */
function colours(theme: string): Map<string, string> {
  const block = css.slice(css.indexOf(`[data-theme="${theme}"]`)).split("}")[0]!;
  return new Map([...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map((m) => [m[1]!, m[2]!]));
}

describe.each([
  ["light", LIGHT],
  ["dark", DARK],
] as const)("%s", (theme, inks) => {
  const of = colours(theme);
  test.each(["text", "quiet", "accent", "note", "warn", "keyword", "string", "number", "comment", "type", "title"])(
    "%s can be read on every ground: contrast 4.5:1",
    (name) => {
      for (const ground of ["ground", "surface"])
        expect(contrast(rgb(of.get(name)!), rgb(of.get(ground)!)), ground).toBeGreaterThanOrEqual(4.5);
    },
  );
  test("warnings on their own ground", () =>
    expect(contrast(rgb(of.get("warn")!), rgb(of.get("warn-ground")!))).toBeGreaterThanOrEqual(4.5));
  test("text and canvas have the same colours", () => {
    expect([inks.ground, inks.text, inks.quiet, inks.accent, inks.note, inks.rule]).toEqual(
      ["ground", "text", "quiet", "accent", "note", "rule"].map((name) => of.get(name)),
    );
  });
});
