// A page that holds answers written down: it gives these, and says what it does not have.
import { expect, test } from "vitest";
import type { Json } from "../../src/backend/facts";
import { Questions } from "../../src/backend/questions";
import { Recorded } from "../../src/backend/recorded";
import { FUNCTIONS, pack, sampleFacts } from "../sample";

/** Two slices of thread 0, of functions 1 and 3, by the letter of docs/viewer-protocol.md. */
function tiles(): ArrayBuffer {
  const buffer = new ArrayBuffer(32 + 16 + 2 * 8 * 2 + 3 * 8 + 2 * 8);
  const view = new DataView(buffer);
  [0x4c49544b, 1, 1, 2].forEach((v, i) => view.setUint32(i * 4, v, true));
  [0, 2, 0, 2].forEach((v, i) => view.setUint32(32 + i * 4, v, true));
  [100, 500].forEach((v, i) => view.setFloat64(48 + i * 8, v, true));
  [50, 60].forEach((v, i) => view.setFloat64(64 + i * 8, v, true));
  [1, 3].forEach((v, i) => view.setUint32(80 + i * 4, v, true));
  return buffer;
}

function minimap(threads: number): string {
  const bytes = new Uint8Array(16 + threads * 4).fill(7, 16);
  [0x504d4d4b, 1, threads, 4].forEach((v, i) => new DataView(bytes.buffer).setUint32(i * 4, v, true));
  return Buffer.from(bytes).toString("base64");
}

const page = (): Json => ({
  version: 1,
  kind: "aggregated",
  range: { begin: 0, end: 1000 },
  trace: sampleFacts(2, 4),
  functions: { calls: 9, busy: 5, rows: { function: [1], calls: [9], total: [5], self: [5] } },
  flame: {
    total: 5,
    calls: 9,
    nodes: { parent: [-1], function: [-1], total: [5], self: [5], calls: [9], merged: [0] },
  },
  flame_inverted: { total: 6, calls: 9, nodes: { parent: [-1], function: [-1], total: [6] } },
  minimap: minimap(2),
  sources: [{ path: "/made/up/sample.cc", text: "a\nb\nc\n", functions: { "1": [2, 3] } }],
  tiles: pack(tiles()),
  tiles_width: 500,
});
const open = async () => new Questions(await Recorded.open(page()));

test("the answers that it holds", async () => {
  const backend = await open();
  const info = await backend.trace();
  expect([info.aggregated, info.range, info.canCut]).toEqual([true, { begin: 0, end: 1000 }, false]);
  const whole = page();
  whole.trace.span = 1000;
  expect((await new Questions(await Recorded.open(whole)).trace()).range).toBeNull();
  expect(backend.picture).toEqual({ begin: 0, pixelNs: 2 });
  expect((await backend.functions({})).calls).toBe(9);
  expect((await backend.flame({}, {})).total).toBe(5);
  expect((await backend.flame({}, { inverted: true })).total).toBe(6);
  expect((await backend.minimap(4)).map((line) => [...line])).toEqual([Array(4).fill(7), Array(4).fill(7)]);
  const source = await backend.source(1);
  expect([source.line, source.endLine, source.text]).toEqual([2, 3, "a\nb\nc\n"]);
});

test("its picture, whole and of one function, of the levels asked for", async () => {
  const backend = await open();
  const asked = { begin: 0, end: 1000, width: 10 };
  const level = (from: number, to: number) => [{ track: 0, from, to }];
  const all = (await backend.tiles({ ...asked, levels: level(0, 5) })).get(0)!;
  expect(all.map((row) => [row.depth, [...row.func]])).toEqual([[2, [1, 3]]]);
  const one = (await backend.tiles({ ...asked, levels: level(0, 5), function: 3 })).get(0)!;
  expect([...one[0]!.begin]).toEqual([500]);
  expect((await backend.tiles({ ...asked, levels: level(0, 1) })).get(0)).toEqual([]);
});

test("search is by names, those with the most calls first", async () => {
  const backend = await open();
  const { functions } = await backend.trace();
  const found = await backend.search("e");
  const want = FUNCTIONS.flatMap((name, i) => (name.includes("e") ? [i] : []));
  expect([...found.functions].sort((a, b) => a - b)).toEqual(want);
  const calls = found.functions.map((i) => functions[i]!.calls);
  expect(calls).toEqual([...calls].sort((a, b) => b - a));
  expect(found.calls).toBe(calls.reduce((sum, n) => sum + n, 0));
  expect((await backend.search("?")).functions).toEqual([]);
});

test("what it does not hold it says; data of another version is refused", async () => {
  const backend = await open();
  await expect(backend.call({ thread: 0, index: 0 }, false)).rejects.toThrow(/one picture/);
  await expect(backend.histogram(1, false)).rejects.toThrow(/one picture/);
  await expect(backend.flame({}, { b: { trace: 1 } })).rejects.toThrow(/one picture/);
  await expect(backend.source(2)).rejects.toThrow(/not in this page/);
  expect(backend.cutAddress(0, 1)).toBeUndefined();
  await expect(Recorded.open({ ...page(), version: 2 })).rejects.toThrow(/version/);
});
