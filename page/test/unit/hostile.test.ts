// Answers that somebody made up, or that were damaged: what reads them ends at once, with the
// reader's own error or with values that can be drawn. The mutations are the same in each run.
import { describe, expect, test } from "vitest";
import { decodeMinimap, decodeTiles, unpack } from "../../src/backend/decode";
import {
  callFacts,
  callValues,
  flameFacts,
  noteFacts,
  noteMarks,
  tableFacts,
  traceFacts,
  type Json,
} from "../../src/backend/facts";
import { lockAnswers } from "../../src/backend/answers";
import { LOCKS } from "../../src/backend/late_lists";
import { object, rowOf } from "../../src/backend/rows";
import { callMemory } from "../../src/backend/memory_facts";
import { BackendError } from "../../src/backend/types/backend";
import { lockLines } from "../../src/model/locks";
import { laneOfLock, withLocks } from "../../src/timeline/track_locks";
import { random, sampleFacts } from "../sample";

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
  const readers: [string, ArrayBuffer, (bytes: ArrayBuffer) => void][] = [
    [
      "tiles",
      tiles(3, 4),
      (bytes) => decodeTiles(bytes).rows.forEach(({ row }) => expect(row.begin.length).toBe(row.density.length)),
    ],
    ["minimap", minimap(3, 8), (bytes) => void decodeMinimap(bytes)],
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

test("texts that are not base64 or gzip are refused", async () => {
  for (const text of ["%", "a", "AAAA", "H4sIAAAAAAAA/w=="])
    await expect(unpack(text, true), text).rejects.toBeInstanceOf(BackendError);
});

/** Each lane has a place, however many there are said to be. */
function drawLocks(json: Json): void {
  const info = withLocks(traceFacts(sampleFacts(1, 1)), LOCKS.read(json));
  for (const track of info.tracks.filter(({ kind }) => kind === "lock"))
    for (let lane = 0; lane < track.lanes; ++lane) expect(laneOfLock(track, lane).height).toBeGreaterThan(0);
}

const drawLines = (json: Json): unknown => lockLines(rowOf(object(json), lockAnswers));

test("facts of other kinds than expected show as nothing", () => {
  const rows = { function: [0], calls: [1], total: [5] };
  const nodes = { parent: [-1], function: [-1], total: [5], self: [5], calls: [1], merged: [0] };
  const readers: [unknown, (json: Json) => unknown][] = [
    [sampleFacts(2, 4), traceFacts],
    [{ calls: 1, rows }, tableFacts],
    [{ total: 5, nodes }, flameFacts],
    [{ function: 1, arguments: [{ name: "n", text: "7" }], returned: [{ name: "", text: "8" }] }, callFacts],
    [{ calls: [{ index: 5, arguments: [{ name: "n", text: "7" }] }] }, callValues],
    [{ count: 1, notes: [{ time: 5, thread: 1, kind: "text", group: "text", line: "a", index: 2 }] }, noteFacts],
    [{ locks: [{ track: 1, kind: "mutex", name: "a", lock: "0x10", lanes: 3, holder_lanes: 1 }] }, drawLocks],
    [{ lock: 0, wait: { thread: 1, index: 2 }, owner: { tid: 7, thread: 0, call: { index: 3, depth: 1 } } }, drawLines],
    [{ lock: 0, held: { begin: 1 }, owner: { tid: 7 }, waiters: [{ thread: 1, begin: 2 }] }, drawLines],
    [{ allocations: 1, bytes: 5, functions: [{ function: 1, bytes: 5 }] }, callMemory],
    [{ marks: [{ time: 5, thread: 1, group: "message", line: "a", count: 2, last: 7 }] }, noteMarks],
  ];
  for (let round = 0; round < 3000; ++round) {
    const [facts, read] = readers[round % readers.length]!;
    expect(() => read(changed(facts, 12) as Json)).not.toThrow();
  }
});
