import { describe, expect, test } from "vitest";
import { byTrack, decodeMinimap, decodeTiles, unpack } from "../../src/backend/decode";
import { pack, random } from "../sample";

/** Tiles by the letter of docs/viewer-protocol.md: two rows, three slices. */
function tiles(): ArrayBuffer {
  const buffer = new ArrayBuffer(32 + 2 * 16 + 24 + 24 + 16 + 16 + 16 + 8 + 8);
  const view = new DataView(buffer);
  [0x4c49544b, 1, 2, 3].forEach((v, i) => view.setUint32(i * 4, v, true));
  view.setFloat64(16, 100, true);
  view.setFloat64(24, 200, true);
  [7, 0, 0, 1].forEach((v, i) => view.setUint32(32 + i * 4, v, true));
  [7, 1, 1, 2].forEach((v, i) => view.setUint32(48 + i * 4, v, true));
  [100, 110, 150].forEach((v, i) => view.setFloat64(64 + i * 8, v, true));
  [90.5, 20, 3].forEach((v, i) => view.setFloat64(88 + i * 8, v, true));
  [1, 2, 3].forEach((v, i) => view.setUint32(112 + i * 4, v, true));
  [10, 11, 12].forEach((v, i) => view.setUint32(128 + i * 4, v, true));
  [1, 1, 9].forEach((v, i) => view.setUint32(144 + i * 4, v, true));
  [2, 0, 128].forEach((v, i) => view.setUint8(160 + i, v));
  [255, 255, 77].forEach((v, i) => view.setUint8(168 + i, v));
  return buffer;
}

describe("tiles", () => {
  test("rows are views into the answer", () => {
    const all = { from: 0, to: 63 };
    const map = byTrack(decodeTiles(tiles()), [
      { track: 7, ...all },
      { track: 8, ...all },
    ]);
    expect(
      byTrack(decodeTiles(tiles()), [{ track: 7, from: 1, to: 1 }])
        .get(7)!
        .map((row) => row.depth),
    ).toEqual([1]);
    expect(map.get(8)).toEqual([]);
    const [outer, inner] = map.get(7)!;
    expect(outer!.depth).toBe(0);
    expect([...outer!.begin]).toEqual([100]);
    expect([...outer!.duration]).toEqual([90.5]);
    expect([...outer!.flags]).toEqual([2]);
    expect(inner!.depth).toBe(1);
    expect([...inner!.begin]).toEqual([110, 150]);
    expect([...inner!.func]).toEqual([2, 3]);
    expect([...inner!.index]).toEqual([11, 12]);
    expect([...inner!.count]).toEqual([1, 9]);
    expect([...inner!.density]).toEqual([255, 77]);
  });

  test("cut anywhere it is an error, not an answer", () => {
    const whole = tiles();
    for (let n = 0; n < whole.byteLength - 8; ++n)
      expect(() => decodeTiles(whole.slice(0, n)), `${n} bytes`).toThrow(/damaged/);
  });

  test("headers that promise too much are refused", () => {
    for (const [at, value] of [
      [0, 1],
      [4, 2],
      [8, 0xffffffff],
      [12, 0xffffffff],
      [40, 9],
      [44, 0xffffffff],
    ] as const) {
      const bad = tiles();
      new DataView(bad).setUint32(at, value, true);
      expect(() => decodeTiles(bad), `word at ${at}`).toThrow(/damaged/);
    }
  });

  test("flipped bytes never lead beyond the answer", () => {
    const next = random(5);
    for (let round = 0; round < 3000; ++round) {
      const bytes = new Uint8Array(tiles());
      bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
      try {
        for (const { row } of decodeTiles(bytes.buffer).rows) expect(row.begin.length).toBe(row.density.length);
      } catch (error) {
        expect((error as Error).message).toMatch(/damaged/);
      }
    }
  });
});

test("minimap: a line for each thread", () => {
  const bytes = new Uint8Array(16 + 6);
  const view = new DataView(bytes.buffer);
  [0x504d4d4b, 1, 2, 3].forEach((v, i) => view.setUint32(i * 4, v, true));
  bytes.set([1, 2, 3, 4, 5, 6], 16);
  expect(decodeMinimap(bytes.buffer).map((line) => [...line])).toEqual([
    [1, 2, 3],
    [4, 5, 6],
  ]);
  view.setUint32(8, 1e9, true);
  expect(() => decodeMinimap(bytes.buffer)).toThrow(/damaged/);
});

test("base64 and gzip", async () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i * i);
  expect(new Uint8Array(await unpack(pack(bytes), true))).toEqual(bytes);
});
