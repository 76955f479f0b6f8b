// A small made-up trace for tests: threads that serve requests, with recursion, open ends, every way out
// of a call, bursts of very short calls, and a gap.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { kNoParent, type Columns } from "../src/backend/decode";
import { kJumped, kOpenBegin, kOpenEnd, kTailCall, kUnwound } from "../src/backend/types";

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

const pad = (bytes: Uint8Array): Uint8Array => {
  const out = new Uint8Array(Math.ceil(bytes.length / 8) * 8);
  out.set(bytes);
  return out;
};

export const pack = (bytes: ArrayBuffer | Uint8Array): string => gzipSync(new Uint8Array(bytes)).toString("base64");

/** The engine as an exported page carries it. viewer_test.sh says where the build has it. */
export const engine = (): string => pack(readFileSync(process.env.KARST_ENGINE ?? "../build/page-engine.wasm"));

/** The bytes of `columns` in an exported page, by docs/viewer-protocol.md. `numbers`: of the threads, if not from 0 on. */
export function encodeColumns(
  threads: readonly Columns[],
  { numbers = threads.map((_, i) => i), states = false, forkedAt = 0, functions = 64 } = {},
): ArrayBuffer {
  const calls = threads.reduce((n, t) => n + t.begin.length, 0);
  const header = new Uint8Array(56 + threads.length * 24);
  const view = new DataView(header.buffer);
  [0x4c4f434b, 1, threads.length, calls, functions, states ? 1 : 0].forEach((value, i) =>
    view.setUint32(i * 4, value, true),
  );
  view.setBigUint64(24, 1_000_000_000n, true);
  view.setBigUint64(48, 2n ** 64n - 1n, true);
  let first = 0;
  threads.forEach((t, i) => {
    const at = 56 + i * 24;
    [numbers[i]!, t.begin.length, first, 0].forEach((value, k) => view.setUint32(at + k * 4, value, true));
    view.setBigUint64(at + 16, BigInt(forkedAt), true);
    first += t.begin.length;
  });
  const low: number[] = [];
  const high: number[] = [];
  for (const t of threads)
    t.begin.forEach((begin, i) => {
      const delta = begin - (i > 0 ? t.begin[i - 1]! : 0);
      low.push(delta % 2 ** 32);
      high.push(Math.floor(delta / 2 ** 32));
    });
  const all = <T extends ArrayLike<number>>(pick: (t: Columns) => T) => threads.flatMap((t) => Array.from(pick(t)));
  const durations = all((t) => t.duration);
  const parts = [
    header,
    ...[
      low,
      high,
      durations.map((d) => d % 2 ** 32),
      durations.map((d) => Math.floor(d / 2 ** 32)),
      all((t) => t.func),
      all((t) => t.parent),
    ].map((column) => pad(new Uint8Array(Uint32Array.from(column).buffer))),
    pad(new Uint8Array(Uint16Array.from(all((t) => t.depth)).buffer)),
    pad(Uint8Array.from(all((t) => t.flags))),
  ];
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out.buffer;
}

/** What an exported page carries. */
export function sampleEmbedded(threads = 4, requests = 60): Record<string, unknown> {
  const calls = Array.from({ length: threads }, (_, i) => makeThread(i + 1, requests));
  const span = Math.max(...calls.map((c) => c[0]!.begin + c[0]!.duration));
  const counts = FUNCTIONS.map((_, f) => calls.reduce((n, c) => n + c.filter((x) => x.func === f).length, 0));
  return {
    version: 1,
    kind: "calls",
    range: { begin: 0, end: span },
    trace: {
      version: "0.1.0",
      name: "sample.karst",
      path: "/made/up/sample.karst",
      complete: true,
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
    },
    sources: [
      {
        path: "/made/up/sample.cc",
        text: "int work(int n) { return n < 2 ? n : work(n - 1) + work(n - 2); }\n\nstd::string get(std::string const& key, int n) { return key; }\n\nvoid serve(Request const& r) {\n  // an endless story </script>\n  get(r.key, 1);\n}\nint main() {\n  serve({});\n}\n",
      },
    ],
    columns: pack(encodeColumns(calls.map(toColumns))),
  };
}
