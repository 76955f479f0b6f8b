// Answers and exported pages that somebody made up, or that were damaged: what reads them ends at once, with the
// reader's own error or with values that can be drawn. The mutations are the same in each run.
import { describe, expect, test } from "vitest";
import { decodeColumns, decodeMinimap, decodeTiles, unpack } from "../../src/backend/decode";
import { flameFacts, tableFacts, traceFacts, type Json } from "../../src/backend/facts";
import { BackendError } from "../../src/backend/types";
import { Engine } from "../../src/backend/engine";
import { encodeColumns, engine, makeThread, random, sampleEmbedded, toColumns } from "../sample";

const next = random(11);
const below = (bound: number): number => Math.floor(next() * bound);
const kNumbers = [0, 1, 2, 7, 8, 255, 65535, 0x7fffffff, 0x80000000, 0xffffffff];

/** Some words and bytes changed, and the end cut off or grown now and then. */
function mutated(seed: ArrayBuffer): ArrayBuffer {
  const size = below(4) === 0 ? below(seed.byteLength + 64) : seed.byteLength;
  const bytes = new Uint8Array(size);
  bytes.set(new Uint8Array(seed).subarray(0, size));
  const view = new DataView(bytes.buffer);
  for (let n = below(4); n >= 0 && size >= 8; --n) {
    // Headers are where it hurts.
    const at = below(2) === 0 ? below(Math.min(16, size >> 2)) * 4 : below(size >> 2) * 4;
    if (below(3) === 0) bytes[below(size)] = below(256);
    else view.setUint32(at, kNumbers[below(kNumbers.length)]!, true);
  }
  return bytes.buffer;
}

/** A copy in which some values are of another kind. */
function changed(value: unknown, odds: number): unknown {
  if (below(odds) === 0) return [null, -1, 1e300, "", "x", [], [null], {}, true][below(9)];
  if (Array.isArray(value)) return value.map((one) => changed(one, odds));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, changed(one, odds)]));
}

function tiles(rows: number, slices: number): ArrayBuffer {
  const buffer = new ArrayBuffer(32 + rows * 16 + slices * 40);
  const view = new DataView(buffer);
  [0x4c49544b, 1, rows, slices].forEach((v, i) => view.setUint32(i * 4, v, true));
  for (let i = 0; i < rows; ++i) [i, 0, 0, slices].forEach((v, k) => view.setUint32(32 + i * 16 + k * 4, v, true));
  return buffer;
}

function minimap(threads: number, width: number): ArrayBuffer {
  const buffer = new ArrayBuffer(16 + threads * width);
  [0x504d4d4b, 1, threads, width].forEach((v, i) => new DataView(buffer).setUint32(i * 4, v, true));
  return buffer;
}

describe("bytes of any kind are decoded or refused", () => {
  const columns = encodeColumns([makeThread(1, 6), makeThread(2, 3)].map(toColumns));
  const readers: [string, ArrayBuffer, (bytes: ArrayBuffer) => void][] = [
    [
      "tiles",
      tiles(3, 4),
      (bytes) => decodeTiles(bytes).rows.forEach(({ row }) => expect(row.begin.length).toBe(row.density.length)),
    ],
    ["minimap", minimap(3, 8), (bytes) => void decodeMinimap(bytes)],
    [
      "columns",
      columns,
      (bytes) => decodeColumns(bytes).forEach((thread) => expect(thread.begin.length).toBe(thread.flags.length)),
    ],
  ];
  test.each(readers)("%s", (_, seed, read) => {
    for (let round = 0; round < 4000; ++round) {
      try {
        read(mutated(seed));
      } catch (error) {
        expect(error).toBeInstanceOf(BackendError);
      }
    }
  });
});

test("a minimap of four thousand million empty lines is refused", () => {
  const bytes = minimap(1, 0);
  new DataView(bytes).setUint32(8, 0xffffffff, true);
  expect(() => decodeMinimap(bytes)).toThrow(BackendError);
});

test("threads cannot share calls, which would multiply them", () => {
  const threads = 2000;
  const calls = 2000;
  const bytes = new ArrayBuffer(56 + threads * 24 + calls * 32);
  const view = new DataView(bytes);
  [0x4c4f434b, 1, threads, calls].forEach((v, i) => view.setUint32(i * 4, v, true));
  for (let t = 0; t < threads; ++t) [t, calls, 0, 0].forEach((v, i) => view.setUint32(56 + t * 24 + i * 4, v, true));
  view.setUint32(24, 1, true);
  const parents = 56 + threads * 24 + 5 * calls * 4;
  for (let i = 0; i < calls; ++i) view.setUint32(parents + i * 4, 0xffffffff, true);
  expect(() => decodeColumns(bytes)).toThrow(/beyond/);
});

test("the engine takes columns of any kind, or refuses them, and answers about what it took", async () => {
  const packed = engine();
  const seed = encodeColumns([makeThread(1, 6), makeThread(2, 3)].map(toColumns));
  let taken = 0;
  for (let round = 0; round < 60; ++round) {
    try {
      const opened = await Engine.open(packed);
      opened.take(mutated(seed));
      opened.functions({});
      opened.functions({ thread: 0, index: below(100) });
      opened.histogram(below(64));
      opened.flame({ begin: below(10_000), end: below(20_000) }, { inverted: true });
      ++taken;
    } catch (error) {
      expect(error).toBeInstanceOf(BackendError);
    }
  }
  expect(taken).toBeGreaterThan(10);
}, 60_000);

test("texts that are not base64 or gzip are refused", async () => {
  for (const text of ["%", "a", "AAAA", "H4sIAAAAAAAA/w=="])
    await expect(unpack(text, true), text).rejects.toBeInstanceOf(BackendError);
});

test("facts of other kinds than expected show as nothing", () => {
  const json = sampleEmbedded(2, 4) as Json;
  const readers: [unknown, (json: Json) => unknown][] = [
    [json.trace, traceFacts],
    [json.functions, tableFacts],
    [json.flame, flameFacts],
  ];
  for (let round = 0; round < 3000; ++round) {
    const [facts, read] = readers[round % readers.length]!;
    expect(() => read(changed(facts, 12) as Json)).not.toThrow();
  }
});
