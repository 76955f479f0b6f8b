import { describe, expect, test } from "vitest";
import { kNoParent, type Columns } from "../../src/backend/decode";
import { LocalBackend } from "../../src/backend/local";
import { CPU_LANE, cpuFunctions, innermost, STATES_OF_THREAD, ThreadStates } from "../../src/backend/local_states";
import { traceFacts } from "../../src/backend/facts";
import { STRIP_DEPTHS } from "../../src/backend/types";
import { leftOut, leftOutWords, momentWords, offStretches } from "../../src/model/switches";
import { endings } from "../../src/timeline/endings";
import { KINDS } from "../../src/timeline/kinds";
import { layoutTracks, NO_CHOICE } from "../../src/model/tracks";
import { laneOfRow, type TrackRenderer } from "../../src/timeline/track_renderer";
import { fromHash } from "../../src/model/url";
import { START } from "../../src/model/store";
import { encodeColumns, engine, pack } from "../sample";

function columns(rows: [begin: number, duration: number, func: number, depth: number, parent?: number][]): Columns {
  return {
    begin: Float64Array.from(rows, (r) => r[0]),
    duration: Float64Array.from(rows, (r) => r[1]),
    func: Uint32Array.from(rows, (r) => r[2]),
    parent: Uint32Array.from(rows, (r) => r[4] ?? kNoParent),
    depth: Uint16Array.from(rows, (r) => r[3]),
    flags: new Uint8Array(rows.length),
  };
}
// Runs, is blocked, waits for a CPU, runs.
const strip = columns([
  [0, 100, 1, 0],
  [100, 300, 4, 2],
  [400, 50, 3, 1],
  [450, 550, 1, 0],
]);
const calls = columns([
  [50, 900, 0, 0],
  [80, 400, 1, 1, 0],
]);
const json = {
  span: 1000,
  functions: { name: ["main", "wait()"] },
  processes: [{ name: "app" }],
  threads: [{ process: 0, tid: 7, name: "app", begin: 0, end: 1000, calls: 2, depths: 2, states: true }],
  states: { backend: "ftrace" },
  tasks: [{ tid: 7, name: "app", of_run: true, thread: 0 }],
  cpus: [{ cpu: 3 }],
  tracks: [
    { id: 0, kind: "thread", name: "app", owner: 0, lanes: 2 },
    { id: 1, kind: "states", name: "states of app", owner: 0, lanes: 4 },
    { id: 2, kind: "cpu", name: "CPU 3", owner: 0, lanes: 2 },
  ],
};
const facts = () => traceFacts(json);
const lane = columns([
  [0, 100, 0, 0],
  [450, 550, 0, 0],
]);
const bytes = encodeColumns([calls, strip, lane], { numbers: [0, STATES_OF_THREAD, CPU_LANE], states: true });
const backend = () => LocalBackend.open({ version: 1, kind: "calls", trace: json, columns: pack(bytes) }, engine());

describe("states of an exported page", () => {
  test("times of any range add up to it", () => {
    const states = new ThreadStates(strip);
    for (let from = -50; from < 1100; from += 37)
      for (let to = from; to < 1200; to += 41) {
        const t = states.between(from, to);
        expect(t.cpu + t.runnable + t.blocked + t.unknown).toBeCloseTo(to - from);
      }
    expect(states.between(80, 480)).toEqual({ cpu: 20 + 30, runnable: 50, blocked: 300, unknown: 0 });
  });
  test("a call and the table have them, total and self", async () => {
    const call = await (await backend()).call({ thread: 0, index: 0 });
    expect(call.states).toEqual({ cpu: 50 + 500, runnable: 50, blocked: 300, unknown: 0 });
    expect(call.selfStates).toEqual({ cpu: 30 + 470, runnable: 0, blocked: 0, unknown: 0 });
    expect(call.waits.map((w) => [w.begin, w.duration, w.state])).toEqual([[100, 300, "blocked"]]);
    const table = await (await backend()).functions({});
    const row = table.rows.find((r) => r.function === 1)!;
    expect([row.cpu, row.runnable, row.blocked, row.selfBlocked]).toEqual([50, 50, 300, 300]);
    expect(table.states).toEqual({ cpu: 550, runnable: 50, blocked: 300, unknown: 0 });
  });
  test("strips and CPUs are tiles like calls, and no calls", async () => {
    const level = (track: number) => ({ track, from: 0, to: 63 });
    const tiles = await (await backend()).tiles({ begin: 0, end: 1000, width: 1000, levels: [level(1), level(2)] });
    expect(tiles.get(1)!.map((row) => [STRIP_DEPTHS[row.depth], row.begin.length])).toEqual([
      ["running", 2],
      ["runnable", 1],
      ["blocked", 1],
    ]);
    const cpu = tiles.get(2)!;
    expect(cpu.map((row) => row.depth)).toEqual([0, 1]);
    expect([...cpu[1]!.func]).toEqual([0, 1, 1, 0]);
    expect((await (await backend()).functions({})).calls).toBe(2);
    expect((await (await backend()).occurrences({ function: 1, order: "time", direction: "next" })).count).toBe(1);
  });
  test("the innermost call at a moment", () => {
    expect([40, 60, 100, 479, 480, 949, 950].map((ns) => innermost(calls, ns))).toEqual([-1, 0, 1, 1, 0, 0, -1]);
    expect(
      cpuFunctions(
        undefined,
        () => undefined,
        () => -1,
        0,
        1,
        1,
      ),
    ).toEqual([]);
  });
});

describe("switches", () => {
  const one = (
    begin: number,
    end: number | null,
    on: boolean,
    of?: { first: number; functions: number; named?: number[]; reason?: string },
  ) => ({
    ...{
      begin,
      end,
      on,
      all: of === undefined,
      first: 0,
      functions: 0,
      ids: of?.functions ?? 0,
      reason: "request",
      named: [] as number[],
    },
    ...of,
  });
  const process = (...switches: ReturnType<typeof one>[]) => ({ switches, switchCount: switches.length });
  const off = (of: ReturnType<typeof process>) => offStretches(of, 0, 100).map(({ begin, end }) => [begin, end]);
  const some = (first: number, functions = 1, named = [first], reason = "request") => ({
    first,
    functions,
    named,
    reason,
  });

  test("nothing is traced from a switching off of all to the next switching on of all", () => {
    const first = one(10, 12, false);
    expect(
      off(process(first, one(20, 22, false), one(30, 33, true), one(50, 51, false, some(1)), one(90, null, false))),
    ).toEqual([
      [10, 33],
      [90, 100],
    ]);
    // Some functions do not count before all do.
    expect(off(process(first, one(20, 25, true, some(1))))).toEqual([[10, 100]]);
    // Off from the start on.
    expect(off(process(one(10, 12, true), one(20, 22, true)))).toEqual([[0, 12]]);
    // More switches than are known: nothing is said beyond them.
    expect(off({ switches: [first, one(40, 41, false)], switchCount: 9 })).toEqual([[10, 40]]);
  });
  test("some functions are left out from their switching off to their switching on, as far as it goes", () => {
    const found = leftOut(
      process(
        one(10, 11, false, some(5, 10, [50, 51])),
        one(20, 21, true, some(5, 2, [50])),
        one(30, 31, false, some(1, 1, [40], "budget")),
        one(60, 61, true, some(5, 10)),
      ),
      0,
      100,
    );
    expect(found.map(({ begin, end, functions, named, budget }) => [begin, end, functions, named, budget])).toEqual([
      [10, 21, 10, [50, 51], false],
      [21, 30, 8, [51], false],
      [30, 61, 9, [51, 40], false],
      [61, 100, 1, [40], true],
    ]);
    const middle = leftOut(process(one(10, 11, false, some(0x10, 9)), one(20, 21, true, some(0x12, 2))), 0, 100);
    expect(middle.map((part) => part.functions)).toEqual([9, 7]);
    // What is first switched on was off before.
    expect(leftOut(process(one(10, 12, true, some(7))), 0, 100).map(({ begin, end }) => [begin, end])).toEqual([
      [0, 12],
    ]);
    expect(leftOut(process(one(10, 12, false), one(20, 21, true)), 0, 100)).toEqual([]);
  });
  test("words for them", () => {
    const name = (f: number) => `f${f}`;
    expect(leftOutWords({ begin: 0, end: 1, functions: 1, named: [3], budget: true }, name)).toBe(
      "1 function left out by the budget: f3",
    );
    expect(leftOutWords({ begin: 0, end: 1, functions: 1200, named: [3, 4], budget: false }, name)).toBe(
      "1,200 functions switched off: f3, f4 and 1,198 more",
    );
  });
  test("a call that was cut did not end by a tail call", () => {
    expect(endings(18)).toEqual(["switched off while it ran: end not known"]);
    expect(endings(16)).toEqual(["left by a tail call"]);
  });
  test("words for what was kept", () => {
    expect(momentWords({ number: 3, kind: "trigger", what: "alarm()" })).toBe("3: trigger alarm()");
    expect(momentWords({ number: 1, kind: "later", what: "" })).toBe("1: kept");
  });
});

describe("tracks", () => {
  const layout = (folded: string[] = []) =>
    layoutTracks([facts()], { ...NO_CHOICE, folded: new Set(folded) }, { begin: 0, end: 1 }, KINDS);
  test("a thread with states has room for them; CPUs come below the threads", () => {
    const { scrolled } = layout();
    expect(scrolled.map((t) => [t.kind, t.title])).toEqual([
      ["thread", "app"],
      ["cpus", "CPUs"],
      ["cpu", "CPU 3"],
    ]);
    expect(scrolled[0]!.lead).toBeGreaterThan(0);
    expect(layout(["0:cpus"]).scrolled.map((t) => t.kind)).toEqual(["thread", "cpus"]);
  });
  test("another kind is one renderer: a section of its own, or a strip of its thread's", () => {
    const heart: TrackRenderer = {
      ...{ kind: "heartbeat", lanesAt: laneOfRow, draw: () => {}, click: () => {}, Tip: () => ({}) as never },
      section: { title: "Hearts", key: "hearts", letter: "h", words: (n) => `${n}` },
    };
    const info = traceFacts({
      ...json,
      tracks: [...json.tracks, { id: 9, kind: "heartbeat", name: "heart", owner: 4, lanes: 3 }],
    });
    const choice = { ...NO_CHOICE, pinned: new Set(["0:h4"]) };
    const asSection = layoutTracks([info], choice, { begin: 0, end: 1 }, [...KINDS, heart]);
    expect(asSection.pinned.map((t) => [t.title, t.rows, t.info?.id])).toEqual([["heart", 3, 9]]);
    expect(asSection.scrolled.at(-1)).toMatchObject({ kind: "hearts", title: "Hearts", subtitle: "1" });

    const ofThread = traceFacts({ ...json, tracks: [...json.tracks, { id: 9, kind: "heartbeat", owner: 0 }] });
    const asStrip = layoutTracks([ofThread], NO_CHOICE, { begin: 0, end: 1 }, [
      ...KINDS,
      { kind: "heartbeat", strip: 5 },
    ]);
    const { strips, lead } = asStrip.scrolled[0]!;
    expect(strips.map((strip) => strip.info.id)).toEqual([1, 9]);
    expect(strips[1]!.top).toBeGreaterThanOrEqual(strips[0]!.top + strips[0]!.height);
    expect(lead).toBeGreaterThanOrEqual(strips[1]!.top + 5);
  });
  test("the address may name CPUs", () => {
    expect([...fromHash("fold=0:cpus,0:c2,0:x", START).choice!.folded]).toEqual(["0:cpus", "0:c2"]);
  });
});
