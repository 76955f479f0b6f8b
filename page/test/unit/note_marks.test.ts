// Marks of messages: asked for when the view rests, drawn from what is there, found under the pointer.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { noteFacts, noteMarks, traceFacts } from "../../src/backend/facts";
import type { Backend, Scope } from "../../src/backend/types/backend";
import type { NoteMark } from "../../src/backend/types/notes";
import { START, Store } from "../../src/model/store";
import { layoutTracks, NO_CHOICE } from "../../src/model/tracks";
import { notesIn } from "../../src/panels/notes";
import { drawNoteMarks, noteAt, NoteMarks } from "../../src/timeline/note_marks";
import { bucketOf } from "../../src/timeline/view_answer";
import type { Renderer } from "../../src/timeline/renderer";
import { Scene } from "../../src/timeline/scene";

const info = traceFacts({
  span: 1000,
  processes: [{ name: "app" }],
  threads: [
    {
      process: 0,
      tid: 1,
      name: "says",
      begin: 0,
      end: 1000,
      calls: 9,
      depths: 3,
      notes: { message: 5, value: 7, luck: 3 },
    },
    { process: 0, tid: 2, name: "counts", begin: 0, end: 1000, calls: 9, depths: 3, notes: { value: 2 } },
  ],
  tracks: [
    { id: 0, kind: "thread", owner: 0, lanes: 3 },
    { id: 1, kind: "thread", owner: 1, lanes: 3 },
  ],
});

const mark = (time: number, line: string, count = 1, last = time): NoteMark => ({
  ...{ time, line, count, last, thread: 0, kind: "message", group: "message", index: 4, function: 2 },
});

/** Answers with marks, after 10 ms; notes what was asked. */
function backendOf(marks: readonly NoteMark[]) {
  const asked: { scope: Scope; width: number }[] = [];
  const backend = {
    noteMarks: async (scope: Scope, width: number, _groups: readonly string[], signal?: AbortSignal) => {
      asked.push({ scope, width });
      await new Promise((resolve) => setTimeout(resolve, 10));
      signal?.throwIfAborted();
      return [...marks];
    },
  } as unknown as Backend;
  return { backend, asked };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("facts", () => {
  test("count the groups that the page knows", () => {
    expect(info.threads[0]!.notes).toMatchObject({ message: 5, value: 7 });
    expect([...notesIn(info)]).toEqual([
      ["message", 5],
      ["value", 9],
    ]);
  });
  test("have a call where there is one, and no group that nobody knows", () => {
    const [one, other] = noteFacts({
      count: 9,
      notes: [
        { time: 5, thread: 1, kind: "integer", group: "value", line: "n = 1", index: 3, function: 7 },
        { time: 6, thread: 1, kind: "unknown", group: "luck", line: 4 },
      ],
    }).notes;
    expect(one).toEqual({ time: 5, thread: 1, kind: "integer", group: "value", line: "n = 1", index: 3, function: 7 });
    expect(other).toEqual({ time: 6, thread: 1, kind: "unknown", group: "other", line: "" });
    expect(noteMarks({ marks: [{ time: 5, thread: 0, count: 3, last: 8 }, { time: 9 }] })).toMatchObject([
      { time: 5, count: 3, last: 8 },
      { time: 9, count: 1, last: 9 },
    ]);
  });
});

test("threads with messages have a lane for them, and others have none", () => {
  const [says, counts] = layoutTracks([info], NO_CHOICE, { begin: 0, end: 1000 }).scrolled;
  expect(says!.notes).toBeGreaterThan(10);
  expect(says!.lead).toBe(says!.notes);
  expect(says!.height - counts!.height).toBe(says!.notes);
  expect([counts!.notes, counts!.lead]).toEqual([0, 0]);
  const folded = layoutTracks([info], { ...NO_CHOICE, folded: new Set(["0:0"]) }, { begin: 0, end: 1000 }).scrolled[0]!;
  expect(folded.notes).toBeGreaterThan(0);
  expect(folded.notes).toBeLessThan(says!.notes);
  // One picture and sums: there are no marks to show.
  const sums = layoutTracks([{ ...info, aggregated: true }], NO_CHOICE, { begin: 0, end: 1000 }).scrolled[0]!;
  expect(sums.notes).toBe(0);
});

describe("questions", () => {
  test("share a mark: some pixels, by a power of two", () => {
    for (const pixel of [0.01, 0.3, 1, 7, 1000, 12345.6]) {
      const bucket = bucketOf(pixel, 6);
      expect(Math.log2(bucket) % 1).toBe(0);
      expect(bucket).toBeGreaterThanOrEqual(Math.min(1, pixel * 6));
      expect(bucket).toBeLessThanOrEqual(Math.max(1, pixel * 12));
    }
  });

  test("come when the view rests, once for what lies beside it too", async () => {
    const { backend, asked } = backendOf([mark(150, "a")]);
    let changes = 0;
    const marks = new NoteMarks(backend, info, () => ++changes);
    for (let begin = 100; begin <= 200; begin += 10) {
      marks.want(begin, begin + 200, 1, [0]);
      await vi.advanceTimersByTimeAsync(40);
    }
    expect(asked).toEqual([]);
    expect(marks.complete).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(asked).toEqual([{ scope: { begin: 96, end: 504, threads: [0] }, width: 51 }]);
    expect(changes).toBe(1);
    expect(marks.complete).toBe(true);
    expect(marks.of(0).map(({ line }) => line)).toEqual(["a"]);
    expect(marks.of(1)).toEqual([]);
    // Within what is there.
    marks.want(120, 320, 1, [0]);
    marks.want(300, 500, 1, [0]);
    await vi.advanceTimersByTimeAsync(200);
    expect(asked.length).toBe(1);
    // Beside it, at another zoom, for another thread: what was there stays until the answer.
    marks.want(320, 520, 1, [0]);
    expect(marks.of(0).length).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    marks.want(320, 520, 5, [0]);
    await vi.advanceTimersByTimeAsync(200);
    marks.want(320, 520, 5, [0, 1]);
    await vi.advanceTimersByTimeAsync(200);
    expect(asked.length).toBe(4);
    // The trace's ends are ends of what can be asked for.
    marks.want(-500, 2000, 5, [0]);
    await vi.advanceTimersByTimeAsync(200);
    expect(asked[4]!.scope.begin).toBe(0);
    marks.want(-600, 2100, 5, [0]);
    await vi.advanceTimersByTimeAsync(200);
    expect(asked.length).toBe(5);
  });

  test("that fail, or that nobody waits for any more, change nothing", async () => {
    const failing = { noteMarks: () => Promise.reject(new Error("gone")) } as unknown as Backend;
    const marks = new NoteMarks(failing, info, () => {});
    marks.want(0, 100, 1, [0]);
    await vi.advanceTimersByTimeAsync(200);
    expect(marks.complete).toBe(true);
    expect(marks.of(0)).toEqual([]);

    const { backend, asked } = backendOf([mark(1, "old")]);
    const left = new NoteMarks(backend, info, () => {});
    left.want(0, 100, 1, [0]);
    await vi.advanceTimersByTimeAsync(95);
    expect(asked.length).toBe(1);
    left.want(0, 100, 1, []);
    await vi.advanceTimersByTimeAsync(200);
    expect(left.complete).toBe(true);
    expect(left.of(0)).toEqual([]);
  });
});

describe("in the picture", () => {
  // A pixel for each ns.
  const said = [
    mark(100, "<b>\n"),
    mark(300, "a text that is longer than its room"),
    mark(380, "many", 1200, 390),
    mark(500, "near"),
    mark(512, "nearer"),
  ];
  async function sceneOf() {
    const { backend } = backendOf(said);
    const store = new Store({ ...START, traces: [{ number: 0, backend, info }], view: { begin: 0, span: 1000 } });
    const scene = new Scene(store, () => {});
    scene.width = 1000;
    scene.height = 400;
    scene.noteMarks(0)!.want(0, 1000, 1, [0]);
    await vi.advanceTimersByTimeAsync(200);
    return { scene, store, place: scene.placed()[0]! };
  }

  test("each has its sign, and its text where there is room", async () => {
    const { scene, store, place } = await sceneOf();
    const texts: [string, number][] = [];
    const signs: number[] = [];
    const bars: [number, number][] = [];
    const r = {
      ...{ width: 1000, height: 400, scale: 1 },
      rect: (x: number, _y: number, width: number) => void bars.push([x, width]),
      polygon: (points: readonly number[]) => void signs.push(points[0]!),
      text: (text: string, x: number) => void texts.push([text, x]),
      textWidth: (text: string) => text.length * 6,
    } as unknown as Renderer;
    drawNoteMarks(r, scene, store.state, place);
    expect(signs).toEqual([100, 300, 512]);
    expect(bars).toEqual([
      [379, 12],
      [499, 2],
    ]);
    expect(texts.map(([text]) => text)).toEqual(["<b>\\x0a", "a text tha…", "1,200×", "nearer"]);
    for (const [text, x] of texts.slice(0, 2)) expect(x + text.length * 6).toBeLessThan(x < 200 ? 300 : 380);
    // A count is whole, or left out: "1,200×" has no room in this view.
    texts.length = 0;
    store.set({ view: { begin: 0, span: 2600 } });
    drawNoteMarks(r, scene, store.state, place);
    expect(texts.map(([text]) => text).filter((text) => text.startsWith("1"))).toEqual([]);
    expect(texts.length).toBeGreaterThan(1);
  });

  test("the pointer finds it, and its text", async () => {
    const { scene, store, place } = await sceneOf();
    const y = place.top + 2 + place.track.lead - place.track.notes / 2;
    const at = (x: number, height = y) => noteAt(scene, store.state, x, height)?.mark.line;
    expect(at(90)).toBeUndefined();
    expect(at(96)).toBe("<b>\n");
    expect(at(130)).toBe("<b>\n");
    expect(at(200)).toBeUndefined();
    expect(at(340)).toBe("a text that is longer than its room");
    expect(at(385)).toBe("many");
    expect(at(500)).toBe("near");
    expect(at(512)).toBe("nearer");
    expect(at(100, place.top + place.track.lead + 12)).toBeUndefined();
    expect(at(100, y + place.track.height)).toBeUndefined();
  });
});
