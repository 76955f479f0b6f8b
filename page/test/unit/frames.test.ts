// Frames: their bars above the threads, what colour each has, and how their address is read.
import { describe, expect, test } from "vitest";
import { kOpenBegin, kSummed, type Row } from "../../src/backend/types/tiles";
import { traceFacts } from "../../src/backend/facts";
import { frameFacts } from "../../src/backend/frame_facts";
import { FRAMES } from "../../src/backend/late_lists";
import { contrast } from "../../src/model/colour";
import { classOf, FRAME_CLASSES, isTarget } from "../../src/model/frames";
import { START } from "../../src/model/store";
import { layoutTracks, NO_CHOICE } from "../../src/model/tracks";
import { fromHash, toHash } from "../../src/model/url";
import { KINDS } from "../../src/timeline/kinds";
import { DARK, LIGHT } from "../../src/timeline/theme";
import { classed, withFrames } from "../../src/timeline/track_frames";
import { sampleFacts } from "../sample";

const list = FRAMES.read({
  more: 3,
  frames: [
    { track: 40, process: 0, name: "Frame", count: 1200 },
    { track: 41, process: 0, name: "au\ndio", count: 1 },
  ],
});

describe("tracks of frames", () => {
  const info = withFrames(traceFacts(sampleFacts(2, 5)), list);

  test("stand above all threads, one for each name", () => {
    const { scrolled } = layoutTracks([info], NO_CHOICE, { begin: 0, end: 1e9 }, KINDS);
    expect(scrolled.map(({ kind }) => kind).slice(0, 4)).toEqual(["frames", "frame", "frame", "thread"]);
    expect(scrolled.slice(0, 3).map(({ title, subtitle }) => [title, subtitle])).toEqual([
      ["Frames", "2 of 5 names"],
      ["Frame", "1,200 frames"],
      ["au\\x0adio", "1 frame"],
    ]);
    expect(scrolled.slice(1, 3).map(({ key, info: of }) => [key, of?.id])).toEqual([
      ["0:f0", 40],
      ["0:f1", 41],
    ]);
  });

  test("a folded heading hides them, a pinned one stays", () => {
    const choice = { ...NO_CHOICE, folded: new Set(["0:frames"]), pinned: new Set(["0:f1"]) };
    const { scrolled, pinned } = layoutTracks([info], choice, { begin: 0, end: 1e9 }, KINDS);
    expect(scrolled.filter(({ kind }) => kind === "frame")).toEqual([]);
    expect(pinned.map(({ key }) => key)).toEqual(["0:f1"]);
  });
});

describe("colours of frames", () => {
  const names = (row: Row) => [...row.func].map((of) => FRAME_CLASSES[of]);
  const row: Row = {
    depth: 0,
    begin: Float64Array.of(0, 10, 30, 60, 90),
    duration: Float64Array.of(10, 20, 21, 41, 50),
    func: Uint32Array.of(0, 0, 0, 0, 0),
    index: Uint32Array.of(1, 2, 3, 4, 9),
    count: Uint32Array.of(1, 1, 1, 1, 5),
    flags: Uint8Array.of(kOpenBegin, 0, 0, 0, kSummed),
    density: Uint8Array.of(255, 255, 255, 255, 255),
  };

  test("go by the target: at it is within, twice of it is far; a sum is as its longest", () => {
    expect(names(classed(row, 20))).toEqual(["unknown", "within", "over", "far", "far"]);
    // Another target, another colour: what was made before is not kept.
    expect(names(classed(row, 41))).toEqual(["unknown", "within", "within", "within", "over"]);
    expect([...row.func]).toEqual([0, 0, 0, 0, 0]);
    expect(classOf(40, true, 20)).toBe(1);
  });

  test.each([LIGHT, DARK])("labels can be read on them: contrast 4.5:1", (inks) => {
    const value = parseInt(inks.onCall.slice(1), 16);
    const text = { r: value >> 16, g: (value >> 8) & 255, b: value & 255 };
    for (const of of FRAME_CLASSES) expect(contrast(inks.frames[of], text), of).toBeGreaterThanOrEqual(4.5);
  });

  test("a target is a time above 0", () => {
    expect([16.7, 0.001, 1000].every(isTarget)).toBe(true);
    expect([0, -1, NaN, Infinity, 1e9].some(isTarget)).toBe(false);
  });
});

test("the address has the set and the frame, and what is none is left out", () => {
  for (const frame of [{ trace: 0, set: 3, number: 17 }, { trace: 1, set: 0 }, null])
    expect(fromHash(`#${toHash({ ...START, frame })}`, START).frame ?? null).toEqual(frame);
  for (const bad of ["1", "x.1.2", "-1.0.0", "0.0.1e9", "0.0.99999999999999999999", "0.0.1.2"])
    expect(fromHash(`#frame=${bad}`, START).frame, bad).toBeNull();
});

test("an answer that lacks things makes a frame without them", () => {
  expect(frameFacts({ over: "many", slowest: [{ number: 3, begin: 1, duration: 2, marked: true }] })).toMatchObject({
    over: 0,
    slowest: [{ number: 3, begin: 1, duration: 2, marked: true }],
    frame: null,
    previous: null,
    next: null,
  });
});
