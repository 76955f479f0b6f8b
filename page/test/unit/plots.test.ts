// Values as plots: their tracks, the line from one value to the next, what the pointer reads off it.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { plotFacts, plotParts, traceFacts } from "../../src/backend/facts";
import type { Backend } from "../../src/backend/types/backend";
import type { PlotPart } from "../../src/backend/types/notes";
import { START, Store } from "../../src/model/store";
import { LATE_LISTS, withLate } from "../../src/timeline/kinds";
import { drawPlot, plotAt, plotNumber, withPlots } from "../../src/timeline/plots";
import type { Renderer } from "../../src/timeline/renderer";
import { Scene } from "../../src/timeline/scene";

const info = traceFacts({
  span: 1000,
  processes: [{ name: "app", pid: 7 }],
  threads: [{ tid: 1, name: "app", begin: 0, end: 1000, calls: 9, depths: 1, notes: { value: 5 } }],
  tracks: [{ id: 0, kind: "thread", owner: 0, lanes: 1 }],
});
const plots = plotFacts({ plots: [{ process: 0, name: "queue\n", count: 5, min: 0, max: 100 }, { name: 3 }] });
// A bucket is a ns, a pixel too.
const part: PlotPart = plotParts({
  plots: [{ plot: 0, before: 50, at: [100, 300], count: [1, 3], min: [100, 0], max: [100, 80], last: [100, 20] }],
})[0]!;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function sceneOf(parts: readonly PlotPart[]) {
  const asked: unknown[] = [];
  const plotParts = async (...of: unknown[]) => (asked.push(of), parts);
  const backend = { plotParts } as unknown as Backend;
  const traces = [{ number: 0, backend, info }];
  const store = new Store({ ...START, traces, late: [{ plots }], view: { begin: 0, span: 1000 } });
  const scene = new Scene(store, () => {});
  scene.width = 1000;
  scene.height = 400;
  scene.plots(0)!.want(0, 1000, 1, [0, 1]);
  await vi.advanceTimersByTimeAsync(200);
  const place = scene.placed().find(({ track }) => track.info?.kind === "value")!;
  return { scene, store, place, asked };
}

test("facts are what they should be, or show as nothing", () => {
  expect(plots[1]).toEqual({ process: 0, name: "", count: 0, min: 0, max: 0 });
  expect(plotParts({ plots: [{ plot: 1, before: "x", at: [1, 2], min: [4] }] })).toEqual([
    { plot: 1, before: null, at: [1, 2], count: [0, 0], min: [4, 0], max: [0, 0], last: [0, 0] },
  ]);
});

test("each name has a track below the threads; of several processes it says whose", () => {
  const { tracks } = withPlots(info, plots);
  expect(tracks.map(({ kind, name }) => [kind, name])).toEqual([
    ["thread", ""],
    ["value", "queue\\x0a"],
    ["value", ""],
  ]);
  const two = { ...info, processes: [info.processes[0]!, { ...info.processes[0]!, pid: 8 }] };
  expect(withPlots(two, [{ ...plots[0]!, process: 1 }]).tracks[1]!.name).toBe("queue\\x0a · app 8");
});

test("what was read of the system has a section of its own, and the machine's is no process's", () => {
  const usage = plotFacts({
    plots: [
      { process: 0, name: "cpu of the machine", usage: "machine", unit: "% of a CPU" },
      { process: 1, name: "memory", usage: "process", unit: "MiB" },
      { process: 1, name: "odd", usage: "nobody" },
    ],
  });
  const two = { ...info, processes: [info.processes[0]!, { ...info.processes[0]!, pid: 8 }] };
  const tracks = withPlots(two, usage, "usage").tracks.slice(1);
  expect(tracks.map(({ kind, name, owner }) => [kind, name, owner])).toEqual([
    ["usage", "cpu of the machine", 0],
    ["usage", "memory · app 8", 1],
  ]);
  expect(
    withPlots(two, usage)
      .tracks.slice(1)
      .map(({ name }) => name),
  ).toEqual(["odd · app 8"]);
  const read = withLate({ ...info, usage: true }, { plots: [...plots, ...usage] });
  expect(read.tracks.map(({ kind }) => kind)).toEqual(["thread", "value", "value", "value", "usage", "usage"]);
  expect(LATE_LISTS.filter(({ path }) => path === "plots").length).toBe(1);
});

test("numbers are short", () => {
  expect([12, 1234567, 0.1 + 0.2, -2.5, 1e300, NaN].map(plotNumber)).toEqual([
    ...["12", "1,234,567", "0.3", "-2.5", "1e+300", "–"],
  ]);
});

test("the line steps, and is as high as values of a pixel are apart", async () => {
  const { scene, store, place, asked } = await sceneOf([part]);
  expect(asked).toHaveLength(1);
  const rects: number[][] = [];
  const r = {
    ...{ width: 1000, height: 400, scale: 1 },
    rect: (...of: [number, number, number, number, string]) =>
      of[4] === scene.inks.plot && void rects.push(of.slice(0, 4) as number[]),
    text: () => {},
    textWidth: () => 20,
  } as unknown as Renderer;
  drawPlot(r, scene, store.state, place, 0);
  const [first, rise, second, fall, third] = rects as [number[], number[], number[], number[], number[]];
  expect(rects).toHaveLength(5);
  // From the left to 100, to 300, to the trace's end.
  expect([first[0]! + first[2]!, second[0], second[0]! + second[2]!, third[0], third[0]! + third[2]!]).toEqual([
    ...[100, 100, 300, 300, 1000],
  ]);
  const top = place.top;
  const bottom = place.top + place.track.height;
  expect(second[1]).toBeLessThan(first[1]!);
  expect(third[1]).toBeGreaterThan(first[1]!);
  // 50 up to 100; then down from 100 to 0, though 20 comes last.
  expect(rise[1]).toBe(second[1]);
  expect(rise[1]! + rise[3]!).toBeCloseTo(first[1]! + 2);
  expect(fall[1]).toBe(second[1]);
  expect(fall[1]! + fall[3]!).toBeGreaterThan(third[1]! + 2);
  for (const [, y, , height] of rects as [number, number, number, number][]) {
    expect(y).toBeGreaterThan(top);
    expect(y + height).toBeLessThan(bottom);
  }
});

test("the pointer reads the value of a moment", async () => {
  const { scene, store, place } = await sceneOf([part, { ...part, plot: 1, before: null, at: [] }]);
  const at = (x: number, y = place.top + 10) => plotAt(scene, store.state, x, y);
  expect(at(50)).toMatchObject({ time: 50, now: 50 });
  expect(at(150)).toMatchObject({ time: 150, now: 100 });
  expect(at(300.5)).toMatchObject({ now: 20, several: { count: 3, min: 0, max: 80 } });
  expect(at(900)!.several).toBeUndefined();
  expect(at(900)!.now).toBe(20);
  expect(at(50, place.top + place.track.height + 10)).toMatchObject({ plot: plots[1], now: undefined });
  expect(at(50, 30)).toBeUndefined();
});
