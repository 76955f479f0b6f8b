import { describe, expect, test } from "vitest";
import { traceFacts } from "../../src/backend/facts";
import type { Backend } from "../../src/backend/types/backend";
import { START, type State } from "../../src/model/store";
import { fromHash, toHash } from "../../src/model/url";

const state: State = {
  ...START,
  view: { begin: -12.5, span: 1_234_567.125 },
  scroll: 40,
  selected: { trace: 1, thread: 3, index: 99 },
  explained: { trace: 1, thread: 3, index: 98 },
  range: { begin: 100, end: 250 },
  highlight: { trace: 0, function: 7 },
  baseline: { trace: 0, thread: 0, index: 1 },
  offset: -5e6,
  tab: "flame",
  dockOpen: false,
  scope: "thread",
  noteScope: "range",
  noteFilter: "full & 7",
  noteGroup: "value",
  newestNotes: true,
  inverted: true,
  sort: "p99",
  ascending: true,
  filter: "a+b & c=d,é",
  choice: {
    order: "calls",
    filter: "writer 1",
    hideIdle: true,
    pinned: new Set(["0:3", "1:12"]),
    folded: new Set(["0:p1"]),
  },
};

describe("the address", () => {
  test("holds all that is seen", () => {
    const back = fromHash(`#${toHash(state)}`, START);
    for (const key of [
      "view",
      "scroll",
      "selected",
      "explained",
      "range",
      "highlight",
      "baseline",
      "offset",
      "tab",
      "dockOpen",
      "scope",
      "noteScope",
      "noteFilter",
      "noteGroup",
      "newestNotes",
      "inverted",
      "sort",
      "ascending",
      "filter",
      "choice",
    ] as const)
      expect(back[key], key).toEqual(state[key]);
  });

  test("of a fresh page is short", () => expect(toHash(START)).toBe("t=0+1000000"));

  test("of an older page counts the functions that occur", () => {
    const info = traceFacts({ functions: { count: 9, number: [2, 5, 7], name: ["f", "g", "h"] } });
    const start = { ...START, traces: [{ number: 0, info, backend: {} as Backend }] };
    expect(fromHash("#fn=0.1", start).highlight).toEqual({ trace: 0, function: 5 });
    for (const none of ["0.3", "0.-1", "0.length", "1.0", "-1.0", "0"])
      expect(fromHash(`#fn=${none}`, start).highlight).toBeUndefined();
    expect(fromHash("#func=0.5", start).highlight).toEqual({ trace: 0, function: 5 });
  });

  test("negative begins survive", () => expect(fromHash("#t=-5.5+10", START).view).toEqual({ begin: -5.5, span: 10 }));

  test.each([
    "#t=1",
    "#t=a+b",
    "#t=0+-5",
    "#t=0+0",
    "#sel=1.2",
    "#sel=-1.0.0",
    "#sel=0.0.1.5",
    "#tab=<script>",
    "#q=%E0%A4%A",
    "#pin=alert(1)",
    "#=&&=",
    "#sort=x",
  ])("%s leaves out what makes no sense", (hash) => {
    const back = fromHash(hash, START);
    expect(back.view).toBeUndefined();
    expect(back.selected ?? null).toBeNull();
    expect(back.tab ?? START.tab).toBe(START.tab);
    expect(back.sort ?? START.sort).toBe(START.sort);
    expect(back.choice?.pinned.size).toBe(0);
  });
});
