import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { traceFacts, type Json } from "../../src/backend/facts";
import { Network, whileReading } from "../../src/backend/network";
import { Questions } from "../../src/backend/questions";
import { BackendError, type Backend } from "../../src/backend/types/backend";
import type { ThreadSums } from "../../src/backend/types/sums";
import type { Row, TileRequest } from "../../src/backend/types/tiles";
import type { ThreadInfo, TraceInfo } from "../../src/backend/types/trace";
import { isUnread, isUntouched, moreRead, readingWords } from "../../src/model/reading";
import { Store, type LoadedTrace } from "../../src/model/store";
import { layoutTracks, NO_CHOICE } from "../../src/model/tracks";
import { Scene } from "../../src/timeline/scene";
import { TileStore } from "../../src/timeline/tile_store";
import { sampleFacts } from "../sample";

const facts = (): Json => structuredClone(sampleFacts(6, 5));
const whole = traceFacts(facts());

/** The same while only some threads are read; of the functions two occurred so far. */
function partly(...read: number[]): TraceInfo {
  const json = facts();
  json.reading = { threads_read: read.length };
  json.threads.forEach((thread: Json, i: number) => {
    if (!read.includes(i)) Object.assign(thread, { unread_from: thread.first, calls: 0, depths: 0 });
  });
  const { name, module, file, line, calls } = json.functions;
  const at = [6, 1];
  json.functions = {
    ...{ count: name.length, number: at },
    ...Object.fromEntries(
      Object.entries({ name, module, file, line, calls }).map(([key, all]) => [key, at.map((i) => (all as Json)[i])]),
    ),
  };
  return traceFacts(json);
}

const row = (func: number): Row => ({
  depth: 0,
  begin: Float64Array.of(0),
  duration: Float64Array.of(10),
  func: Uint32Array.of(func),
  index: Uint32Array.of(0),
  count: Uint32Array.of(1),
  flags: Uint8Array.of(0),
  density: Uint8Array.of(255),
});

describe("a trace that is being read", () => {
  test("says which of its threads are not there", () => {
    const info = partly(0, 2);
    expect(info.reading).toBe(true);
    expect(whole.reading).toBe(false);
    expect(info.threads.map((t) => t.unreadFrom === null)).toEqual([true, false, true, false, false, false]);
    expect(isUntouched(info.threads[1]!)).toBe(true);
    expect(isUntouched(info.threads[0]!)).toBe(false);
    const part: ThreadInfo = { ...info.threads[1]!, unreadFrom: 100, end: 900, depths: 3 };
    expect(isUntouched(part)).toBe(false);
    expect([
      isUnread(part, 0, 99),
      isUnread(part, 0, 100),
      isUnread(part, 800, 2000),
      isUnread(part, 901, 2000),
    ]).toEqual([false, true, true, false]);
    expect(readingWords(info, 0.25)).toMatch(/2 of 6 threads, 25(\.0)?% of its events/);
    expect(readingWords({ ...info, threads: [part] }, 0.5)).not.toContain("threads");
  });

  test("has its functions under the numbers that they keep", () => {
    const { functions } = partly(0);
    expect(functions).toHaveLength(whole.functions.length);
    expect(Object.keys(functions)).toEqual(["1", "6"]);
    expect([functions[1], functions[6]]).toEqual([whole.functions[1], whole.functions[6]]);
  });

  test("has no idle threads among those that are not read", () => {
    const shown = layoutTracks([partly(0)], { ...NO_CHOICE, hideIdle: true }, { begin: 0, end: whole.span });
    expect(shown.scrolled.map((t) => t.thread)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("more of it", () => {
    expect([...moreRead(partly(0), partly(0, 4))]).toEqual([4]);
    expect([...moreRead(partly(0, 4), whole)]).toEqual([1, 2, 3, 5]);
    expect([...moreRead(whole, whole)]).toEqual([]);
  });
});

/** Answers tiles when it is told to. */
class FakeBackend {
  asked: { request: TileRequest; answer: (rows: Row[] | Error) => void; signal: AbortSignal }[] = [];
  first: number[][] = [];
  threads: (range: unknown) => Promise<ThreadSums> = () =>
    Promise.resolve({ depths: [], cpu: [], runnable: [], blocked: [] });
  tiles(request: TileRequest, signal: AbortSignal): Promise<Map<number, Row[]>> {
    return new Promise((resolve, reject) => {
      const answer = (rows: Row[] | Error) =>
        rows instanceof Error ? reject(rows) : resolve(new Map(request.levels.map((l) => [l.track, rows])));
      this.asked.push({ request, answer, signal });
    });
  }
  readFirst(threads: readonly number[]): void {
    this.first.push([...threads]);
  }
}
const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

describe("tiles", () => {
  const make = (errors: string[] = []) => {
    const backend = new FakeBackend();
    return {
      backend,
      tiles: new TileStore(
        backend as unknown as Backend,
        () => {},
        (message) => errors.push(message),
      ),
    };
  };
  const shown = (tiles: TileStore, track: number) =>
    tiles.cover({ track, band: 0 }, 0, 1000, 1)[0]?.tile.rows[0]?.func[0];

  test("of threads that have more by now are forgotten, others stay", async () => {
    const { backend, tiles } = make();
    tiles.want(
      [
        { track: 1, band: 0 },
        { track: 11, band: 0 },
      ],
      0,
      1000,
      1,
    );
    backend.asked[0]!.answer([row(2)]);
    await settle();
    tiles.forget(new Set([11]));
    expect(shown(tiles, 11)).toBeUndefined();
    expect(shown(tiles, 1)).toBe(2);
  });

  test("that do not come are told, once", async () => {
    const errors: string[] = [];
    const { backend, tiles } = make(errors);
    for (const answer of [0, 1]) {
      tiles.want([{ track: 1, band: 0 }], 0, 1000, 1);
      backend.asked[answer]!.answer(new BackendError("out of order", 500));
      await settle();
      expect(errors).toEqual(["out of order"]);
    }
  });
});

describe("the timeline", () => {
  const loaded = (backend: FakeBackend, info: TraceInfo): LoadedTrace[] => [
    { number: 0, backend: backend as unknown as Backend, info },
  ];

  test("asks for what is read, wishes for what is not, and is complete when all in view is there", async () => {
    const backend = new FakeBackend();
    const store = new Store();
    store.set({ traces: loaded(backend, partly(0)), view: { begin: 0, span: whole.span } });
    const scene = new Scene(store, () => {});
    scene.width = 800;
    scene.height = 4000;
    scene.want();
    const threads = () => new Set(backend.asked.flatMap((a) => a.request.levels.map((l) => l.track)));
    expect(threads()).toEqual(new Set([0]));
    expect(backend.first).toEqual([[1, 2, 3, 4, 5]]);
    for (let i = 0; i < backend.asked.length; ++i) backend.asked[i]!.answer([row(1)]);
    await settle();
    expect(scene.complete).toBe(false);
    const tiles = scene.tiles(0);
    store.set({ traces: loaded(backend, whole) });
    scene.want();
    expect(scene.tiles(0)).toBe(tiles);
    expect(threads()).toEqual(new Set([0, 1, 2, 3, 4, 5]));
    for (let i = 0; i < 40; ++i) {
      backend.asked.forEach((a) => a.answer([row(1)]));
      await settle();
    }
    expect(scene.complete).toBe(true);
    expect(backend.first).toHaveLength(1);
  });

  test("is as high as the calls in view are deep, once the view rests; what is looked at stays where it is", async () => {
    const backend = new FakeBackend();
    const asked: unknown[] = [];
    backend.threads = (range: unknown) => {
      asked.push(range);
      return Promise.resolve({ depths: [1, 2, 1, 1, 1, 1], cpu: [], runnable: [], blocked: [] });
    };
    const store = new Store();
    store.set({
      traces: loaded(backend, whole),
      view: { begin: 100, span: 500 },
      selected: { trace: 0, thread: 2, index: 0 },
    });
    const scene = new Scene(store, () => {});
    scene.width = 800;
    scene.height = 120;
    const place = () => scene.layout().scrolled[2]!.y - scene.scrollNow();
    store.set({ scroll: scene.layout().scrolled[2]!.y - 10 });
    const before = place();
    scene.want();
    scene.want();
    expect(scene.settled).toBe(false);
    await vi.waitFor(() => expect(scene.settled).toBe(true));
    expect(asked).toEqual([{ begin: 100, end: 600 }]);
    expect(scene.layout().scrolled.map((t) => t.rows)).toEqual([1, 2, 1, 1, 1, 1]);
    expect(place()).toBe(before);
  });
});

describe("while the server reads", () => {
  let answers: Record<string, () => unknown>;
  let asked: string[];
  beforeEach(() => {
    asked = [];
    vi.stubGlobal("document", { baseURI: "http://127.0.0.1:1/t/" });
    vi.stubGlobal("fetch", async (where: string) => {
      const path = where.replace("http://127.0.0.1:1/t/api/", "");
      asked.push(path);
      return { ok: true, json: async () => answers[path.split("?")[0]!]!() };
    });
  });
  afterEach(() => vi.unstubAllGlobals());

  test("there is a picture for each part, and one of the whole", async () => {
    let parts = 0;
    let wholeAsked: ((now: unknown) => void) | undefined;
    answers = {
      progress: () => {
        if (asked[asked.length - 1]!.includes("wait=1")) return new Promise((resolve) => (wholeAsked = resolve));
        return {
          phase: "rebuilding",
          parts: (parts = Math.min(parts + 1, 2)),
          done: 0,
          total: 1,
          error: "",
          files: [],
        };
      },
    };
    let shown = 0;
    const over = whileReading(async () => {
      if (++shown === 2) wholeAsked!({ phase: "ready", parts: 0 });
    });
    await over;
    expect(shown).toBe(3);
  });

  test("a moment in which there is nothing to be shown is no failure; another one is", async () => {
    let why = 503;
    let shown = 0;
    answers = {
      progress: () => {
        if (!asked[asked.length - 1]!.includes("wait=1")) return { phase: "rebuilding", parts: 1 };
        return new Promise((resolve) => setTimeout(() => resolve({ phase: "ready", parts: 0 }), 1));
      },
    };
    const show = async () => {
      if (++shown === 1) throw new BackendError("not now", why);
    };
    await whileReading(show);
    expect(shown).toBe(2);
    why = 500;
    shown = 0;
    await expect(whileReading(show)).rejects.toThrow("not now");
  });

  test("a trace that is ready at once is shown once, and a failure is told", async () => {
    answers = { progress: () => ({ phase: "ready", parts: 0 }) };
    let shown = 0;
    await whileReading(async () => void ++shown);
    expect(shown).toBe(1);
    answers = { progress: () => ({ phase: "failed", error: "memory is out", parts: 0 }) };
    await expect(whileReading(async () => void ++shown)).rejects.toThrow("memory is out");
    expect(shown).toBe(1);
  });

  test("questions about all of the trace wait until it is read", async () => {
    const reading = { ...facts(), reading: { threads_read: 1 } };
    let now: Json = reading;
    answers = { trace: () => now, search: () => ({ functions: [1], calls: 2 }) };
    const backend = new Questions(new Network(0, 1));
    expect((await backend.trace()).reading).toBe(true);
    let found = false;
    const search = backend.search("x").then(() => (found = true));
    await settle();
    await settle();
    expect(found).toBe(false);
    expect(asked.some((path) => path.startsWith("search"))).toBe(false);
    now = facts();
    expect((await backend.trace()).reading).toBe(false);
    await search;
    expect(asked.some((path) => path.startsWith("search"))).toBe(true);
  });
});
