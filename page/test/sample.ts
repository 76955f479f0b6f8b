// A small made-up trace for tests: threads that serve requests, with recursion, open ends, every way out
// of a call, bursts of very short calls, and a gap.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { kNoParent } from "../src/backend/protocol";
import type { Json } from "../src/backend/facts";
import { kJumped, kOpenBegin, kOpenEnd, kSummed, kTailCall, kUnwound, type Row } from "../src/backend/types/tiles";

export const FUNCTIONS = [
  "main",
  "serve(Request const&)",
  "db::Store::get(std::string const&, int)",
  "work(int)",
  "std::vector<int, std::allocator<int> >::push_back(int const&)",
  "(anonymous namespace)::parse(char const*)",
  "operator<<(std::ostream&, Request const&)",
  "retry()",
];

interface Call {
  begin: number;
  duration: number;
  func: number;
  parent: number;
  depth: number;
  flags: number;
}

/** Numbers that look random and are the same each time. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function makeThread(seed: number, requests: number): Call[] {
  const next = random(seed);
  const calls: Call[] = [];
  let now = 1000 * seed;
  const call = (func: number, parent: number, depth: number, body: (self: number) => void, flags = 0): void => {
    const self = calls.push({ begin: now, duration: 0, func, parent, depth, flags }) - 1;
    now += 1 + Math.floor(next() * 5);
    body(self);
    now += 1 + Math.floor(next() * 5);
    calls[self]!.duration = now - calls[self]!.begin;
  };
  const work = (n: number, parent: number, depth: number): void =>
    call(3, parent, depth, (self) => {
      if (n > 0) {
        work(n - 1, self, depth + 1);
        if (next() < 0.4) work(n - 2, self, depth + 1);
      } else now += Math.floor(next() * 40);
    });
  call(
    0,
    kNoParent,
    0,
    (main) => {
      for (let i = 0; i < requests; ++i) {
        const ends = [0, 0, 0, kUnwound, kJumped, kTailCall][Math.floor(next() * 6)]!;
        call(
          1,
          main,
          1,
          (serve) => {
            call(5, serve, 2, () => (now += Math.floor(next() * 300)));
            call(2, serve, 2, (get) => {
              work(5, get, 3);
              for (let k = 0; k < 12; ++k) call(4, get, 3, () => (now += Math.floor(next() * 3)));
              if (i % 17 === 5) now += 20_000;
            });
            if (next() < 0.2) call(7, serve, 2, () => (now += 500));
            call(6, serve, 2, () => (now += 40));
          },
          ends,
        );
        now += Math.floor(next() * 2000);
      }
    },
    kOpenEnd | (seed === 2 ? kOpenBegin : 0),
  );
  return calls;
}

/** All calls of one thread, in order of begin, parents before children. */
export interface Columns {
  begin: Float64Array;
  duration: Float64Array;
  func: Uint32Array;
  parent: Uint32Array; // kNoParent: none
  depth: Uint16Array;
  flags: Uint8Array;
}

export function toColumns(calls: readonly Call[]): Columns {
  return {
    begin: Float64Array.from(calls, (c) => c.begin),
    duration: Float64Array.from(calls, (c) => c.duration),
    func: Uint32Array.from(calls, (c) => c.func),
    parent: Uint32Array.from(calls, (c) => c.parent),
    depth: Uint16Array.from(calls, (c) => c.depth),
    flags: Uint8Array.from(calls, (c) => c.flags),
  };
}

export const pack = (bytes: ArrayBuffer | Uint8Array): string => gzipSync(new Uint8Array(bytes)).toString("base64");

/** The engine as an exported page carries it. viewer_test.sh says where the build has it. */
export const engine = (): string => pack(readFileSync(process.env.KARST_ENGINE ?? "../build/page-engine.wasm"));

/** Facts of the made-up trace. */
export function sampleFacts(threads = 4, requests = 60): Json {
  const calls = Array.from({ length: threads }, (_, i) => makeThread(i + 1, requests));
  const span = Math.max(...calls.map((c) => c[0]!.begin + c[0]!.duration));
  const counts = FUNCTIONS.map((_, f) => calls.reduce((n, c) => n + c.filter((x) => x.func === f).length, 0));
  return {
    version: "sample",
    name: "sample.karst",
    path: "/made/up/sample.karst",
    complete: true,
    growing: false,
    traces: 1,
    span,
    calls: calls.reduce((n, c) => n + c.length, 0),
    clock: { resolution_ns: 0.4 },
    problems: [],
    processes: [{ pid: 4711, name: "sample", command_line: ["./sample"], executable: "/made/up/sample" }],
    threads: calls.map((c, i) => ({
      process: 0,
      tid: 4711 + i,
      name: i === 0 ? "sample" : `worker-${i}`,
      begin: c[0]!.begin,
      end: c[0]!.begin + c[0]!.duration,
      first: c[0]!.begin,
      last: c[0]!.begin + c[0]!.duration,
      exited: true,
      calls: c.length,
      depths: 1 + Math.max(...c.map((x) => x.depth)),
      overwritten_events: i === 1 ? 1000 : 0,
      lost_events: 0,
      gaps: i === 1 ? [{ begin: 0, end: 1900, kind: "overwritten", blocks: 2 }] : [],
    })),
    tracks: calls.map((c, i) => ({
      ...{ id: i, kind: "thread", name: i === 0 ? "main" : `worker ${i}`, owner: i },
      lanes: 1 + Math.max(...c.map((x) => x.depth)),
    })),
    functions: {
      name: FUNCTIONS,
      module: FUNCTIONS.map(() => 0),
      file: FUNCTIONS.map((_, i) => (i < 4 ? 0 : -1)),
      line: [9, 5, 3, 1, 0, 0, 0, 0],
      calls: counts,
    },
    modules: ["/made/up/sample"],
    files: ["/made/up/sample.cc"],
    has_source: [true],
  };
}

// A server of tiles, as far as the painter's test needs one.

class RowBuilder {
  private readonly at: number[] = [];
  private readonly counts: number[] = [];
  private readonly cover: number[] = [];
  private pixel = -Infinity;

  push(columns: Columns, i: number, pixel: number, pixelNs: number): void {
    const duration = columns.duration[i]!;
    const last = this.at.length - 1;
    if (duration < pixelNs) {
      if (pixel === this.pixel && last >= 0) {
        this.counts[last]!++;
        this.cover[last]! += duration;
        if (duration > columns.duration[this.at[last]!]!) this.at[last] = i;
        return;
      }
      this.pixel = pixel;
    } else {
      this.pixel = -Infinity;
    }
    this.at.push(i);
    this.counts.push(1);
    this.cover.push(duration);
  }

  finish(columns: Columns, depth: number, pixelNs: number): Row {
    const n = this.at.length;
    const row: Row = {
      depth,
      begin: new Float64Array(n),
      duration: new Float64Array(n),
      func: new Uint32Array(n),
      index: Uint32Array.from(this.at),
      count: Uint32Array.from(this.counts),
      flags: new Uint8Array(n),
      density: new Uint8Array(n),
    };
    this.at.forEach((i, k) => {
      const summed = this.counts[k]! > 1;
      row.begin[k] = columns.begin[i]!;
      row.duration[k] = columns.duration[i]!;
      row.func[k] = columns.func[i]!;
      row.flags[k] = (columns.flags[i]! & ~kSummed) | (summed ? kSummed : 0);
      row.density[k] = summed ? Math.min(255, Math.round((this.cover[k]! / pixelNs) * 255)) : 255;
    });
    return row;
  }
}

/** What to draw of one thread in a picture `width` pixels wide; of one function alone when asked to. */
export function tileRows(columns: Columns, begin: number, end: number, width: number, only?: number): Row[] {
  const pixelNs = (end - begin) / width;
  const rows: (RowBuilder | undefined)[] = [];
  const n = columns.begin.length;
  for (let i = 0; i < n; ++i) {
    const from = columns.begin[i]!;
    if (from >= end) break;
    if (only !== undefined && columns.func[i] !== only) continue;
    const duration = columns.duration[i]!;
    const long = duration >= pixelNs;
    if (long ? from + duration <= begin && !(duration === 0 && from >= begin) : from < begin) continue;
    const pixel = long ? 0 : Math.floor((from - begin) / pixelNs);
    (rows[columns.depth[i]!] ??= new RowBuilder()).push(columns, i, pixel, pixelNs);
  }
  return rows.flatMap((row, depth) => (row ? [row.finish(columns, depth, pixelNs)] : []));
}
