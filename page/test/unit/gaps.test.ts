import { describe, expect, test } from "vitest";
import { traceFacts } from "../../src/backend/facts";
import type { Backend } from "../../src/backend/types/backend";
import { START, Store } from "../../src/model/store";
import { drawGaps, drawMoments, gapAt } from "../../src/timeline/gaps";
import type { Hatch, Renderer } from "../../src/timeline/renderer";
import { RULER, Scene } from "../../src/timeline/scene";
import { missing } from "../../src/panels/missing";

// A thousand pixels for a thousand ns.
const info = traceFacts({
  span: 1000,
  functions: { name: ["main", "(anonymous namespace)::hot(int)"] },
  processes: [
    {
      name: "app",
      switches: [
        { begin: 400, end: 410, all: false, first: 2, ids: 2, functions: 1, named: [1], on: false, reason: "budget" },
        { begin: 600, end: 610, all: true, on: false, reason: "request" },
        { begin: 690, end: 700, all: true, on: true, reason: "request" },
      ],
      switch_count: 3,
      moments: [
        { number: 1, kind: "over", begin: 750, end: 850, thread: 0, what: "main:10ms" },
        { number: 2, kind: "slowest", begin: 750, end: 850, thread: 0, what: "main" },
        { number: 3, kind: "snapshot", begin: 900, end: 900, thread: -1, what: "" },
      ],
    },
  ],
  threads: [
    {
      process: 0,
      tid: 1,
      name: "app",
      begin: -50,
      end: 1000,
      calls: 9,
      depths: 6,
      overwritten_events: 21,
      gaps: [
        { begin: -50, end: 100, kind: "overwritten", blocks: 4 },
        { begin: 200, end: 300, kind: "missing", blocks: 1 },
      ],
    },
  ],
});
const loaded = { number: 0, backend: {} as Backend, info };
const store = new Store({ ...START, traces: [loaded], view: { begin: 0, span: 1000 } });
const scene = new Scene(store, () => {});
scene.width = 1000;
scene.height = 400;

function drawn() {
  const hatches: [Hatch, number, number, number][] = [];
  const texts: { text: string; x: number; y: number; width: number }[] = [];
  const r = {
    width: 1000,
    height: 400,
    scale: 1,
    hatch: (x: number, y: number, width: number, _height: number, _colour: string, kind: Hatch) =>
      hatches.push([kind, Math.round(x), Math.round(x + width), y]),
    text: (text: string, x: number, y: number) => texts.push({ text, x, y, width: text.length * 5 }),
    textWidth: (text: string) => text.length * 5,
    rect: () => {},
  } as unknown as Renderer;
  const place = scene.placed()[0]!;
  drawGaps(r, scene, store.state, place);
  drawMoments(r, scene, store.state, place);
  return { hatches, texts, place };
}

describe("gaps", () => {
  test("each kind has its place and a pattern of its own; what was left out stands in a lane above the calls", () => {
    const { hatches, place } = drawn();
    const top = RULER;
    const lane = top + 2 + place.track.lead - place.track.lane;
    expect(place.track.lane).toBeGreaterThan(8);
    expect(hatches).toEqual([
      ["rising", -2, 100, top],
      ["crossed", 200, 300, top],
      ["falling", 600, 700, top],
      ["dotted", 400, 1000, lane],
    ]);
  });
  test("words for what has room; no flag covers another", () => {
    const { texts } = drawn();
    const words = texts.map(({ text }) => text);
    expect(words).toContain("1 function left out by the budget: hot");
    for (const flag of ["1: over the limit main:10ms", "2: slowest main", "3: snapshot"]) expect(words).toContain(flag);
    const flags = texts.filter(({ text }) => /^\d:/.test(text));
    for (const a of flags)
      for (const b of flags)
        if (a !== b && a.y === b.y)
          expect(a.x + a.width <= b.x || b.x + b.width <= a.x, `${a.text}, ${b.text}`).toBe(true);
  });
  test("what lies under a point", () => {
    const { place } = drawn();
    const lane = RULER + 2 + place.track.lead - place.track.lane + 3;
    const low = RULER + place.track.height - 8;
    const kinds = (
      [
        [50, low],
        [250, low],
        [650, low],
        [800, RULER + 1],
        [900, low],
        [350, low],
        [500, lane],
        [300.5, lane],
      ] as const
    ).map(([x, y]) => gapAt(scene, store.state, x, y)?.kind);
    expect(kinds).toEqual(["overwritten", "missing", "off", "kept", "kept", undefined, "left out", "missing"]);
    expect(gapAt(scene, store.state, 50, RULER - 5)).toBeUndefined();
  });
  test("the list of what is missing has all of it", () => {
    const { short, lines } = missing(loaded, 0)!;
    expect(short).toBe("10 overwritten");
    expect(lines.map(({ words }) => words)).toEqual([
      expect.stringContaining("About 10 calls were overwritten"),
      "Records of app are missing",
      "tracing was switched off",
      "1 function left out by the budget: (anonymous namespace)::hot(int)",
    ]);
    expect(missing({ ...loaded, info: traceFacts({ span: 1, processes: [{}], threads: [{}] }) }, 0)).toBeUndefined();
  });
});
