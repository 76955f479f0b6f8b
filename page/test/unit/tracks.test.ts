import { describe, expect, test } from "vitest";
import { traceFacts } from "../../src/backend/facts";
import { TABS } from "../../src/model/tabs";
import { layoutTracks, NO_CHOICE, threadKey, visibleTracks } from "../../src/model/tracks";
import { KINDS, LATE_LISTS, panelOf, withLate } from "../../src/timeline/kinds";
import { sampleFacts } from "../sample";

const trace = traceFacts(sampleFacts(6, 5));
const all = { begin: 0, end: trace.span };

function touching(tracks: readonly { y: number; height: number }[]): boolean {
  return tracks.every((t, i) => i === 0 || t.y === tracks[i - 1]!.y + tracks[i - 1]!.height);
}

describe("tracks", () => {
  test("one for each thread, one below the other", () => {
    const layout = layoutTracks([trace], NO_CHOICE, all);
    expect(layout.scrolled.map((t) => t.thread)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(touching(layout.scrolled)).toBe(true);
    expect(layout.hidden).toBe(0);
  });

  test("pinned ones are apart", () => {
    const layout = layoutTracks([trace], { ...NO_CHOICE, pinned: new Set([threadKey(0, 3)]) }, all);
    expect(layout.pinned.map((t) => t.thread)).toEqual([3]);
    expect(layout.scrolled.some((t) => t.thread === 3)).toBe(false);
    expect(touching(layout.scrolled)).toBe(true);
  });

  test("folded ones are lower", () => {
    const open = layoutTracks([trace], NO_CHOICE, all).scrolled[2]!;
    const folded = layoutTracks([trace], { ...NO_CHOICE, folded: new Set([open.key]) }, all).scrolled[2]!;
    expect(folded.height).toBeLessThan(open.height);
  });

  test("filtered by words of name and id, all of which must be there", () => {
    const shown = (filter: string) => layoutTracks([trace], { ...NO_CHOICE, filter }, all).scrolled.map((t) => t.title);
    expect(shown("WORKER-3")).toEqual(["worker-3"]);
    expect(shown("worker 4713")).toEqual(["worker-2"]);
    expect(shown("nobody")).toEqual([]);
    expect(layoutTracks([trace], { ...NO_CHOICE, filter: "nobody" }, all).hidden).toBe(6);
  });

  test("pinned ones stay, whatever the filter", () => {
    const layout = layoutTracks([trace], { ...NO_CHOICE, filter: "nobody", pinned: new Set([threadKey(0, 2)]) }, all);
    expect(layout.pinned.map((t) => t.thread)).toEqual([2]);
    expect(layout.scrolled).toEqual([]);
  });

  test("idle ones are hidden by what is in view", () => {
    const idle = { ...trace, threads: trace.threads.map((t, i) => (i === 4 ? { ...t, begin: 1e12, end: 2e12 } : t)) };
    expect(layoutTracks([idle], { ...NO_CHOICE, hideIdle: true }, all).scrolled.map((t) => t.thread)).not.toContain(4);
  });

  test("two traces have headings", () => {
    const layout = layoutTracks([trace, trace], NO_CHOICE, all);
    expect(layout.scrolled.filter((t) => t.kind === "process").map((t) => t.title)).toEqual([
      "A · sample",
      "B · sample",
    ]);
    expect(layout.scrolled.filter((t) => t.kind === "thread")).toHaveLength(12);
    const folded = layoutTracks([trace, trace], { ...NO_CHOICE, folded: new Set(["0:p0"]) }, all);
    expect(folded.scrolled.filter((t) => t.kind === "thread")).toHaveLength(6);
  });

  test("ordered by calls", () => {
    const calls = layoutTracks([trace], { ...NO_CHOICE, order: "calls" }, all).scrolled.map(
      (t) => trace.threads[t.thread]!.calls,
    );
    expect(calls).toEqual([...calls].sort((a, b) => b - a));
  });

  test("those on screen are found among many", () => {
    const many = { ...trace, threads: Array.from({ length: 2000 }, (_, i) => ({ ...trace.threads[0]!, index: i })) };
    const { scrolled } = layoutTracks([many], NO_CHOICE, all);
    for (const from of [0, 1, 12_345, scrolled[1999]!.y]) {
      const seen = visibleTracks(scrolled, from, from + 500);
      expect(seen).toEqual(scrolled.filter((t) => t.y + t.height > from && t.y < from + 500));
    }
  });

  test("are as high as the calls in view are deep", () => {
    const deep = layoutTracks([trace], NO_CHOICE, all).scrolled[1]!;
    const levels = [[0, 2, 99]];
    const { scrolled } = layoutTracks([trace], NO_CHOICE, all, [], { levels });
    expect(scrolled.slice(0, 3).map((t) => t.rows)).toEqual([0, 2, trace.threads[2]!.depths]);
    expect(scrolled[0]!.height).toBeLessThan(scrolled[1]!.height);
    expect(scrolled[1]!.height).toBeLessThan(deep.height);
    expect(touching(scrolled)).toBe(true);
  });

  test("in the order of what their threads did; waiter and waker come first, together", () => {
    const ranks = [{ slowest: [1, 9, 5], blocked: [3, 2, 8], cpu: [] }];
    const order = (order: "slowest" | "blocked" | "waits") =>
      layoutTracks([trace], { ...NO_CHOICE, order }, all, [], { ranks, together: { trace: 0, threads: [4, 2] } })
        .scrolled.slice(0, 4)
        .map((t) => t.thread);
    expect(order("slowest")).toEqual([1, 2, 0, 3]);
    expect(order("blocked")).toEqual([2, 0, 1, 3]);
    expect(order("waits")).toEqual([4, 2, 0, 1]);
  });
});

describe("kinds of tracks", () => {
  test("bring the panels that the lower half leaves to them, and no other", () => {
    const brought = TABS.filter(({ id }) => panelOf(id)).map(({ id }) => id);
    expect(brought).toEqual(TABS.filter((tab) => "ofTrack" in tab).map(({ id }) => id));
    expect(KINDS.filter(({ panel }) => panel).length).toBe(brought.length);
  });

  test("add tracks of those lists alone that are there", () => {
    const info = traceFacts(sampleFacts());
    expect(new Set(LATE_LISTS.map(({ path }) => path)).size).toBe(LATE_LISTS.length);
    expect(withLate(info)).toBe(info);
    const made = Object.fromEntries(LATE_LISTS.map(({ path, read }) => [path, read({})]));
    expect(withLate(info, made)).toBe(info);
    const plots = LATE_LISTS.find(({ path }) => path === "plots")!.read({ plots: [{ name: "queue" }] });
    const kinds = withLate(info, { ...made, plots }).tracks.map(({ kind }) => kind);
    expect(kinds.filter((kind) => !info.tracks.some((one) => one.kind === kind))).toEqual(["value"]);
  });
});
