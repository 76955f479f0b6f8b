import { expect, test } from "vitest";
import { traceFacts } from "../../src/backend/facts";
import type { Backend } from "../../src/backend/types/backend";
import { contrast } from "../../src/model/colour";
import { START, Store } from "../../src/model/store";
import { Scene } from "../../src/timeline/scene";
import { DARK, LIGHT, Looks } from "../../src/timeline/theme";

const lane = { process: 0, begin: 0, end: 1000, calls: 9, depths: 3 };
const info = traceFacts({
  span: 1000,
  functions: { name: ["main", "[suspended]"] },
  processes: [{ name: "app" }],
  threads: [
    { ...lane, tid: 11, name: "worker" },
    { ...lane, tid: 1000000001, fiber: true, name: "parser" },
  ],
});

test("a fiber's lane says what it is and not a number that nobody has", () => {
  expect(info.threads.map((thread) => thread.fiber)).toEqual([false, true]);
  const store = new Store({
    ...START,
    traces: [{ number: 0, backend: {} as Backend, info }],
    view: { begin: 0, span: 1000 },
  });
  const scene = new Scene(store, () => {});
  scene.width = 1000;
  scene.height = 1000;
  const said = scene.placed().map(({ track }) => `${track.title}, ${track.subtitle}`);
  expect(said).toContain("worker, 11");
  expect(said).toContain("parser, fiber");
});

test.each([LIGHT, DARK])("the time in which a fiber did not run is pale", (inks) => {
  const looks = new Looks(["main", "[suspended]"], inks);
  const rgb = (css: string) => {
    const [r, g, b] = css.match(/\d+/g)!.map(Number) as [number, number, number];
    return { r, g, b };
  };
  const [main, suspended] = looks.css.map((css) => contrast(rgb(css), inks.background)) as [number, number];
  expect(suspended).toBeLessThan(main);
  expect(suspended).toBeGreaterThan(1);
});
