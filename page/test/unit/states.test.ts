import { describe, expect, test } from "vitest";
import { traceFacts } from "../../src/backend/facts";
import { leftOut, leftOutWords, momentWords, offStretches } from "../../src/model/switches";
import { notKnown } from "../../src/timeline/track_cpus";
import { endings } from "../../src/timeline/endings";
import { KINDS } from "../../src/timeline/kinds";
import { layoutTracks, NO_CHOICE } from "../../src/model/tracks";
import { laneOfRow, type TrackRenderer } from "../../src/timeline/track_renderer";
import { fromHash } from "../../src/model/url";
import { START } from "../../src/model/store";

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
    expect(endings(16)).toEqual(["ended with a tail call"]);
  });
  test("words for what was kept", () => {
    expect(momentWords({ number: 3, kind: "trigger", what: "alarm()" })).toBe("3: trigger alarm()");
    expect(momentWords({ number: 1, kind: "later", what: "" })).toBe("1: kept");
  });
});

describe("a CPU", () => {
  test("nothing is told of a stretch whose end was not recorded; what is summed stays", () => {
    const row = {
      ...{ depth: 0, begin: Float64Array.of(0, 10, 20), duration: Float64Array.of(5, 5, 5) },
      ...{ func: Uint32Array.of(3, 4, 5), index: Uint32Array.of(0, 1, 2), count: Uint32Array.of(1, 1, 2) },
      ...{ flags: Uint8Array.of(0, 2, 128 | 2), density: new Uint8Array(3) },
    };
    const drawn = notKnown(row, 9);
    expect([...drawn.func]).toEqual([3, 9, 5]);
    expect([...row.func]).toEqual([3, 4, 5]);
    expect(notKnown(row, 9)).toBe(drawn);
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
