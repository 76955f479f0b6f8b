// What the files of the page import of each other when they run: there are no circles.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../src", import.meta.url));
const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));

/** Files that a file imports more of than types. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  return [...text.matchAll(/^(?:import|export) (?!type )([^;"]*?) ?(?:from )?"(\.[^"]+)";/gms)].flatMap(
    ([, what, from]) => {
      const names = /^\{(.*)\}$/s.exec(what!.trim())?.[1]?.split(",") ?? [];
      if (names.length > 0 && names.every((name) => /^\s*(type .*)?$/s.test(name))) return [];
      const to = normalize(join(dirname(file), from!));
      return [`${to}.ts`, `${to}.tsx`].filter((one) => files.includes(one));
    },
  );
}

const imports = new Map(files.map((file) => [file, importsOf(file)]));

test("no file imports itself by way of others", () => {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(" > "));
    if (path.includes(file) || done.has(file)) return;
    for (const to of imports.get(file)!) visit(to, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect([...imports.values()].flat().length).toBeGreaterThan(300);
  expect(circles).toEqual([]);
});
