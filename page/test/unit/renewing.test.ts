// SPDX-License-Identifier: MIT
// What becomes of a page when the trace was read again.
import { expect, test } from "vitest";
import type { Renewal } from "../../src/backend/network";
import type { Backend } from "../../src/backend/types/backend";
import type { TraceInfo } from "../../src/backend/types/trace";
import { renewedState } from "../../src/model/renewing";
import { START, type LoadedTrace, type State } from "../../src/model/store";

const info = (names: string[], extent: number) =>
  ({ functions: names.map((name) => ({ name, module: "m", file: "f", line: 1 })), extent }) as unknown as TraceInfo;
const loaded = (of: TraceInfo): LoadedTrace => ({ number: 0, backend: {} as Backend, info: of });

const before: State = {
  ...START,
  traces: [loaded(info(["a", "b"], 100))],
  generation: 3,
  view: { begin: 10, span: 50 },
  scroll: 40,
  filter: "typed",
  selected: { trace: 0, thread: 1, index: 9 },
  selectedSpan: { begin: 20, end: 30, depth: 2, function: 1 },
  baseline: { trace: 0, thread: 0, index: 4 },
  highlight: { trace: 0, function: 1 },
  choice: { ...START.choice, pinned: new Set(["0:1", "0:c0"]), folded: new Set(["0:0"]) },
};
const renewal: Renewal = { generation: 4, same: "calls", shift: 0, from: [null], calls: [], threads: [[0, 1]] };
const after = (change: Partial<Renewal>, now = info(["a", "b"], 200)): State => ({
  ...before,
  ...renewedState(before, [loaded(now)], [], { ...renewal, ...change }),
});

test("where all numbers are the same, nothing but the facts changes", () => {
  const state = after({});
  expect(state).toEqual({ ...before, traces: state.traces, generation: 4, grown: false });
  expect(state.traces[0]!.info.extent).toBe(200);
});

test("calls that have other rows are the same calls", () => {
  const state = after({ same: "threads", calls: [[0, 1, 5], null] });
  expect(state.selected).toEqual({ trace: 0, thread: 1, index: 5 });
  expect(state.selectedSpan).toEqual(before.selectedSpan);
  expect(state.baseline).toBeNull();
  expect([state.callNumbers, state.numbers]).toEqual([before.callNumbers + 1, before.numbers]);
  expect([state.view, state.scroll, state.filter]).toEqual([before.view, 40, "typed"]);
});

test("a selected call that is not there is told", () => {
  const state = after({ same: "threads", calls: [null, [0, 0, 1]] });
  expect([state.selected, state.selectedSpan]).toEqual([null, null]);
  expect(state.notice).toContain("not in what is shown");
});

test("threads and functions that have other numbers are followed", () => {
  const moved = { same: "file", calls: [[0, 2, 5], null], threads: [[-1, 2]] } as const;
  const state = after(moved, info(["new", "a", "b"], 200));
  expect([...state.choice.pinned]).toEqual(["0:2", "0:c0"]);
  expect([...state.choice.folded]).toEqual([]);
  expect(state.highlight).toEqual({ trace: 0, function: 2 });
  expect(state.numbers).toBe(before.numbers + 1);
});

test("times that count from earlier move what is seen with them", () => {
  const state = after({ shift: -5 });
  expect(state.view).toEqual({ begin: 15, span: 50 });
  expect(state.selectedSpan).toMatchObject({ begin: 25, end: 35 });
});

test("another file is seen from its begin, and said to be one", () => {
  const state = after({ same: "nothing", calls: [null, null], threads: [[-1, -1]] }, info(["x"], 1000));
  expect(state.view.span).toBeGreaterThan(1000);
  expect([state.selected, state.highlight, state.scroll]).toEqual([null, null, 0]);
  expect(state.notice).toContain("another recording");
});
