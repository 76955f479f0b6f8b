import { describe, expect, test } from "vitest";
import { kSummed, type Row } from "../../src/backend/types/tiles";
import { fitted } from "../../src/timeline/frame";
import { blend, RowPainter, strength, type Palette } from "../../src/timeline/paint";
import { levelOf, TileStore, tileLength } from "../../src/timeline/tile_store";
import type { Backend } from "../../src/backend/types/backend";
import type { TileRequest } from "../../src/backend/types/tiles";
import { makeThread, tileRows, toColumns } from "../sample";

const palette: Palette = {
  fill: Uint32Array.of(0xff0000ff, 0xff00ff00, 0xffff0000),
  edge: Uint32Array.of(0xff000080, 0xff008000, 0xff800000),
  background: 0xffffffff,
};
function row(slices: [begin: number, duration: number, func: number, count?: number, density?: number][]): Row {
  return {
    depth: 0,
    begin: Float64Array.from(slices, (s) => s[0]),
    duration: Float64Array.from(slices, (s) => s[1]),
    func: Uint32Array.from(slices, (s) => s[2]),
    index: Uint32Array.from(slices, (_, i) => i),
    count: Uint32Array.from(slices, (s) => s[3] ?? 1),
    flags: Uint8Array.from(slices, (s) => (s[3] ? kSummed : 0)),
    density: Uint8Array.from(slices, (s) => s[4] ?? 255),
  };
}
const whole = { begin: 0, pixelNs: 1, from: 0, to: 1e9 };
function paint(r: Row, width = 20, pixel = 1, begin = 0, tile = whole): Uint32Array {
  const painter = new RowPainter(width);
  painter.start();
  painter.add(r, palette, { begin, pixel }, tile);
  painter.finish(palette);
  return painter.line;
}

describe("painting a level", () => {
  test("highlighted calls are the stronger the longer they are, and never gone", () => {
    expect(strength(100, 100)).toBe(1);
    expect(strength(10, 100)).toBeCloseTo(0.7);
    expect([1, 0.001, 0].map((ns) => strength(ns, 100))).toEqual([0.4, 0.4, 0.4]);
    expect(strength(5, 0)).toBe(1); // nothing is known of the others
    const painter = new RowPainter(20);
    painter.start();
    painter.overlay(
      row([
        [2, 1, 0],
        [8, 8, 0],
      ]),
      palette,
      { begin: 0, pixel: 1 },
      whole,
      [],
      20,
      8,
    );
    expect(painter.line[8]).toBe(0xff0000ff);
    expect(painter.line[2]).toBe(blend(0xff0000ff, palette.background, strength(1, 8)));
  });
  test("a single short call is stronger on a palette that says so", () => {
    const lines = [0.35, 0.55].map((faint) => {
      const painter = new RowPainter(20);
      painter.start();
      const own = { ...palette, faint };
      painter.add(row([[3, 0.001, 0]]), own, { begin: 0, pixel: 1 }, whole);
      painter.finish(own);
      return painter.line[3]! & 0xff00;
    });
    expect(lines[1]).toBeLessThan(lines[0]!);
  });
  test("a call covers its pixels and no other, with a line at its end", () => {
    const line = paint(row([[5, 5, 0]]));
    expect([...line.subarray(4, 11)]).toEqual([0, 0xff0000ff, 0xff0000ff, 0xff0000ff, 0xff0000ff, 0xff000080, 0]);
  });
  test("neighbours do not overlap", () => {
    const line = paint(
      row([
        [0, 2, 0],
        [2, 2, 1],
      ]),
    );
    expect([...line.subarray(0, 5)]).toEqual([0xff0000ff, 0xff0000ff, 0xff00ff00, 0xff00ff00, 0]);
  });
  test("a call that begins before the picture is drawn from its edge", () => {
    const line = paint(row([[-100, 105, 0]]));
    expect(line[0]).toBe(0xff0000ff);
    expect(line[5]).toBe(0);
  });
  test("of those that share a pixel the longest has the colour, all of them the strength", () => {
    const line = paint(
      row([
        [3.1, 0.1, 0],
        [3.3, 0.3, 1],
        [3.7, 0.2, 2],
      ]),
    );
    expect(line[3]).toBe(blend(0xff00ff00, 0xffffffff, 0.35 + 0.65 * 0.6));
    expect(line[2]).toBe(0);
    expect(line[4]).toBe(0);
  });
  test("a call of a pixel or more is not painted over by a short one", () => {
    const line = paint(
      row([
        [3, 1, 0],
        [3.5, 0.1, 1],
      ]),
    );
    expect(line[3]).toBe(0xff0000ff);
  });
  test("sums of coarser tiles fill the pixel that they stand for", () => {
    const tile = { begin: 0, pixelNs: 4, from: 0, to: 1e9 };
    const line = paint(row([[5, 1, 2, 3, 128]]), 20, 1, 0, tile);
    const colour = blend(0xffff0000, 0xffffffff, 0.35 + (0.65 * 128) / 255);
    expect([...line.subarray(3, 9)]).toEqual([0, colour, colour, colour, colour, 0]);
  });
  test("nothing is painted outside of the part that a tile stands for", () => {
    const line = paint(row([[0, 20, 0]]), 20, 1, 0, { begin: 0, pixelNs: 1, from: 5, to: 10 });
    expect(line[4]).toBe(0);
    expect(line[5]).toBe(0xff0000ff);
    expect(line[9]).not.toBe(0);
    expect(line[10]).toBe(0);
  });
  test("calls of a function that is not in the table are painted as nothing, and harm nothing", () => {
    expect(paint(row([[3, 5, 99]]))[4]).toBe(0);
  });
});

test("a name never gets more room than there is", () => {
  const textWidth = (text: string) => text.length * 6;
  for (let room = 0; room < 300; ++room) {
    const text = fitted({ textWidth }, ["leveldb::DBImpl::Write", "DBImpl::Write", "Write"], room);
    expect(textWidth(text)).toBeLessThanOrEqual(Math.max(0, room));
  }
  expect(fitted({ textWidth }, ["leveldb::DBImpl::Write", "DBImpl::Write", "Write"], 80)).toBe("DBImpl::Write");
  expect(fitted({ textWidth }, ["x".repeat(5000)], 60)).toMatch(/…$/);
});

describe("tiles", () => {
  const columns = toColumns(makeThread(4, 30));
  const requests: TileRequest[] = [];
  const backend = {
    tiles: (request: TileRequest) => {
      requests.push(request);
      return Promise.resolve(
        new Map(request.levels.map((l) => [l.track, tileRows(columns, request.begin, request.end, request.width)])),
      );
    },
  } as unknown as Backend;
  const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

  test("are asked for once, at multiples of their length", async () => {
    const store = new TileStore(
      backend,
      () => {},
      () => {},
    );
    const needs = [{ track: 0, band: 0 }];
    store.want(needs, 1000, 9000, 3);
    store.want(needs, 1000, 9000, 3);
    await settle();
    const asked = requests.length;
    expect(asked).toBe(Math.floor(9000 / tileLength(levelOf(3))) - Math.floor(1000 / tileLength(levelOf(3))) + 1);
    for (const request of requests) expect(request.begin % (request.end - request.begin)).toBe(0);
    store.want(needs, 1000, 9000, 3);
    await settle();
    expect(requests.length).toBe(asked);
    expect(store.complete).toBe(true);
  });

  test("coarser and finer ones stand in until the right ones are there", async () => {
    const store = new TileStore(
      backend,
      () => {},
      () => {},
    );
    const need = { track: 0, band: 0 };
    store.want([need], 0, 8000, 8);
    await settle();
    const closer = store.cover(need, 2000, 3000, 1);
    expect(closer.length).toBeGreaterThan(0);
    for (const part of closer) expect(part.tile.pixelNs).toBe(8);
    const wider = store.cover(need, 0, 8000, 16);
    expect(wider.length).toBeGreaterThan(0);
    for (const part of wider) expect(part.to).toBeGreaterThan(part.from);
  });

  test("a picture left and come back to is drawn, however late its first answers come", async () => {
    const answers: (() => void)[] = [];
    const slow = {
      tiles: ({ levels }: TileRequest) =>
        new Promise((resolve) => answers.push(() => resolve(new Map(levels.map((l) => [l.track, []]))))),
    } as unknown as Backend;
    let changes = 0;
    const store = new TileStore(
      slow,
      () => ++changes,
      () => {},
    );
    const needs = [{ track: 0, band: 0 }];
    store.want(needs, 0, 1000, 1);
    store.want(needs, 0, 1e6, 1e3); // zoomed out: nobody waits for the first ones any more
    store.want(needs, 0, 1000, 1); // and back, before they are gone
    for (let round = 0; round < 9 && answers.length > 0; ++round) {
      for (const answer of answers.splice(0)) answer();
      const before = changes;
      await settle();
      expect(changes).toBeGreaterThan(before); // each brings another frame, which asks again
      store.want(needs, 0, 1000, 1);
    }
    expect(store.complete).toBe(true);
  });

  test("an error is said once, and asked for again later", async () => {
    let fails = 0;
    const said: string[] = [];
    const broken = { tiles: () => (++fails, Promise.reject(new Error("gone"))) } as unknown as Backend;
    const store = new TileStore(
      broken,
      () => {},
      (message) => said.push(message),
    );
    for (let i = 0; i < 3; ++i) {
      store.want([{ track: 0, band: 0 }], 0, 1000, 1);
      await settle();
    }
    expect(said).toEqual(["gone"]);
    expect(fails).toBe(3);
  });
});
