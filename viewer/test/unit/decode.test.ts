import { describe, expect, test } from "vitest";
import { byTrack, decodeColumns, decodeMinimap, decodeTiles, unpack } from "../../src/backend/decode";
import { encodeColumns, makeThread, random, sampleEmbedded, toColumns } from "../sample";

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
    const map = byTrack(decodeTiles(tiles()), [7, 8]);
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

describe("columns", () => {
  const threads = [makeThread(1, 20), makeThread(2, 3)].map(toColumns);
  test("come back as they were", () => {
    const back = decodeColumns(encodeColumns(threads));
    threads.forEach((t, i) => {
      for (const key of ["begin", "duration", "func", "parent", "depth", "flags"] as const)
        expect([...back.get(i)![key]]).toEqual([...t[key]]);
    });
  });
  test("times beyond 32 bits", () => {
    const far = threads.map((t) => ({
      ...t,
      begin: t.begin.map((b) => b + 2 ** 40),
      duration: t.duration.map((d) => d + 2 ** 35),
    }));
    const back = decodeColumns(encodeColumns(far));
    expect([...back.get(0)!.begin]).toEqual([...far[0]!.begin]);
    expect([...back.get(1)!.duration]).toEqual([...far[1]!.duration]);
  });
  test("cut, they are refused", () => {
    const whole = encodeColumns(threads);
    for (let n = 0; n < whole.byteLength - 8; n += 97)
      expect(() => decodeColumns(whole.slice(0, n))).toThrow(/damaged/);
  });
  test("a call that is its own caller is refused", () => {
    const bad = { ...threads[1]!, parent: threads[1]!.parent.map((p, i) => (i === 5 ? 5 : p)) };
    expect(() => decodeColumns(encodeColumns([bad]))).toThrow(/caller/);
  });
});

test("base64 and gzip", async () => {
  const packed = sampleEmbedded(2, 4).columns as string;
  expect(decodeColumns(await unpack(packed, true)).size).toBe(2);
});
