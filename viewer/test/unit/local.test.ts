import { describe, expect, test } from "vitest";
import { kNoParent, type Columns } from "../../src/backend/decode";
import { Engine } from "../../src/backend/engine";
import { LocalBackend } from "../../src/backend/local";
import { kSummed } from "../../src/backend/types";
import { placeFlame } from "../../src/model/flame";
import { encodeColumns, engine, makeThread, pack, sampleEmbedded, toColumns } from "../sample";

const threads = [1, 2, 3].map((seed) => toColumns(makeThread(seed, 25)));
const open = () => LocalBackend.open(sampleEmbedded(3, 25), engine());

/** All calls of a function, the slow way. */
function of(func: number): { thread: number; index: number; duration: number; begin: number }[] {
  return threads.flatMap((c, thread) =>
    [...c.func].flatMap((f, index) =>
      f === func ? [{ thread, index, duration: c.duration[index]!, begin: c.begin[index]! }] : [],
    ),
  );
}
const children = (c: Columns, i: number) => [...c.parent].flatMap((p, k) => (p === i ? [k] : []));

describe("tiles of an exported page", () => {
  test("count every call exactly once over aligned tiles", async () => {
    const backend = await open();
    const { span } = await backend.trace();
    const width = 64;
    const length = 2 ** Math.ceil(Math.log2(span / 5));
    const seen = new Map<string, number>();
    let short = 0;
    for (let begin = 0; begin < span; begin += length) {
      const rows = (
        await backend.tiles({ begin, end: begin + length, width, levels: [{ track: 0, from: 0, to: 63 }] })
      ).get(0)!;
      for (const row of rows)
        for (let i = 0; i < row.begin.length; ++i) {
          if (row.duration[i]! < length / width) short += row.count[i]!;
          else seen.set(`${row.index[i]}`, 1);
          if (i > 0) expect(row.begin[i]!).toBeGreaterThanOrEqual(row.begin[i - 1]!);
        }
    }
    expect(seen.size + short).toBe(threads[0]!.begin.length);
  });

  test("the longest call of a pixel wins", async () => {
    const backend = await open();
    const { span } = await backend.trace();
    const rows = (await backend.tiles({ begin: 0, end: span, width: 40, levels: [{ track: 0, from: 0, to: 63 }] })).get(
      0,
    )!;
    const c = threads[0]!;
    const pixel = span / 40;
    let sums = 0;
    for (const row of rows)
      row.begin.forEach((begin, i) => {
        if (!(row.flags[i]! & kSummed)) return;
        ++sums;
        const at = Math.floor(begin / pixel);
        const same = [...c.begin].flatMap((b, k) =>
          c.depth[k] === row.depth && c.duration[k]! < pixel && Math.floor(b / pixel) === at ? [k] : [],
        );
        expect(row.count[i]).toBe(same.length);
        expect(row.duration[i]).toBe(Math.max(...same.map((k) => c.duration[k]!)));
      });
    expect(sums).toBeGreaterThan(5);
  });

  test("of one function hold no other", async () => {
    const backend = await open();
    const rows = (
      await backend.tiles({ begin: 0, end: 1e9, width: 1e3, levels: [{ track: 1, from: 0, to: 63 }], function: 3 })
    ).get(1)!;
    for (const row of rows) expect(new Set(row.func)).toEqual(new Set([3]));
  });
});

test("a call's numbers", async () => {
  const backend = await open();
  const c = threads[1]!;
  for (const index of [0, 1, 7, 40]) {
    const call = await backend.call({ thread: 1, index });
    const own = children(c, index);
    expect(call.children.count).toBe(own.length);
    expect(call.self).toBe(c.duration[index]! - own.reduce((sum, k) => sum + c.duration[k]!, 0));
    expect(call.children.functions.reduce((n, f) => n + f.calls, 0)).toBe(own.length);
    expect(call.parents.length).toBe(c.depth[index]);
    if (call.parents.length > 0) expect(c.parent[call.parents[0]!.index]).toBe(kNoParent);
  }
  await expect(backend.call({ thread: 1, index: 1e6 })).rejects.toThrow(/no such call/);
});

describe("stepping through a function's calls", () => {
  test.each(["time", "duration"] as const)("by %s meets each once, in order, and back again", async (order) => {
    const backend = await open();
    const expected = of(2).sort(order === "time" ? (a, b) => a.begin - b.begin : (a, b) => b.duration - a.duration);
    const met: string[] = [];
    let last: { thread: number; index: number } | undefined;
    for (;;) {
      const { calls, count } = await backend.occurrences({
        function: 2,
        order,
        direction: "next",
        ...(last ? { at: last } : {}),
      });
      expect(count).toBe(expected.length);
      if (!calls[0]) break;
      met.push(`${calls[0].thread}.${calls[0].index}`);
      last = { thread: calls[0].thread, index: calls[0].index };
    }
    expect(new Set(met).size).toBe(expected.length);
    const { calls } = await backend.occurrences({ function: 2, order, direction: "previous", at: last! });
    expect(`${calls[0]!.thread}.${calls[0]!.index}`).toBe(met[met.length - 2]);
  });
});

describe("sums", () => {
  test("calls and self time of the table are those of the calls", async () => {
    const table = await (await open()).functions({});
    for (const row of table.rows) {
      const own = of(row.function);
      expect(row.calls).toBe(own.length);
      const self = own.reduce(
        (sum, { thread, index, duration }) =>
          sum + duration - children(threads[thread]!, index).reduce((s, k) => s + threads[thread]!.duration[k]!, 0),
        0,
      );
      expect(row.self).toBeCloseTo(self, 6);
    }
    const roots = threads.reduce((sum, c) => sum + c.duration[0]!, 0);
    expect(table.busy).toBeCloseTo(roots, 6);
  });

  test("recursion counts once in total", async () => {
    const row = (await (await open()).functions({})).rows.find((r) => r.function === 3)!;
    const outermost = of(3).filter(({ thread, index }) => {
      const c = threads[thread]!;
      for (let up = c.parent[index]!; up !== kNoParent; up = c.parent[up]!) if (c.func[up] === 3) return false;
      return true;
    });
    expect(row.total).toBe(outermost.reduce((sum, call) => sum + call.duration, 0));
    expect(row.total).toBeLessThan(of(3).reduce((sum, call) => sum + call.duration, 0));
  });

  test("a range counts only what lies in it", async () => {
    const table = await (await open()).functions({ begin: 10_000, end: 30_000 });
    expect(table.busy).toBeLessThanOrEqual(3 * 20_000);
    expect(table.calls).toBeLessThan(threads.reduce((n, c) => n + c.begin.length, 0));
  });

  test.each([false, true])("flame graph (inverted: %s): self times sum to the total", async (inverted) => {
    const flame = await (await open()).flame({}, { inverted });
    expect(flame.selfs.reduce((a, b) => a + b, 0)).toBeCloseTo(flame.total, 3);
    flame.parent.forEach((up, i) => expect(up).toBeLessThan(i));
    const table = await (await open()).functions({});
    expect(flame.total).toBeCloseTo(table.busy, 3);
  });

  test("flame graph's cells lie within their parents and beside each other", async () => {
    const flame = await (await open()).flame({}, {});
    const cells = placeFlame(flame, 0);
    const byNode = new Map(cells.map((cell) => [cell.node, cell]));
    for (const cell of cells) {
      const up = byNode.get(flame.parent[cell.node]!);
      if (!up) continue;
      expect(cell.x).toBeGreaterThanOrEqual(up.x - 1e-9);
      expect(cell.x + cell.width).toBeLessThanOrEqual(up.x + up.width + 1e-9);
      expect(cell.depth).toBe(up.depth + 1);
    }
    const rows = new Map<number, typeof cells>();
    for (const cell of cells) rows.set(cell.depth, [...(rows.get(cell.depth) ?? []), cell]);
    for (const row of rows.values()) {
      const sorted = row.sort((a, b) => a.x - b.x);
      sorted.forEach(
        (cell, i) => i > 0 && expect(cell.x).toBeGreaterThanOrEqual(sorted[i - 1]!.x + sorted[i - 1]!.width - 1e-9),
      );
    }
  });

  test("zoomed into a path the root is its last function", async () => {
    const backend = await open();
    const whole = await backend.flame({}, {});
    const below = await backend.flame({}, { path: [0, 1] });
    const node = whole.func.findIndex((f, i) => f === 1 && whole.func[whole.parent[i]!] === 0);
    expect(below.total).toBe(whole.totals[node]);
    expect(below.func[0]).toBe(1);
  });

  test("a histogram has every complete call in its bucket", async () => {
    const histogram = await (await open()).histogram(3);
    const durations = of(3).map((call) => call.duration);
    expect(histogram.counts.reduce((a, b) => a + b, 0)).toBe(durations.length);
    histogram.counts.forEach((n, i) => {
      const last = i === histogram.counts.length - 1;
      const inside = durations.filter(
        (d) => d >= histogram.edges[i]! && (d < histogram.edges[i + 1]! || (last && d <= histogram.edges[i + 1]!)),
      );
      expect(n).toBe(inside.length);
    });
    expect(histogram.max).toBe(Math.max(...durations));
  });
});

describe("what the page once counted in its own way is counted as the command does", () => {
  // main calls f three times; the middle call is told otherwise by each test.
  const three = (flags: number[], forkedAt = 0) => {
    const columns: Columns = {
      begin: Float64Array.of(0, 100, 300, 700),
      duration: Float64Array.of(1000, 100, 200, 250),
      func: Uint32Array.of(0, 1, 1, 1),
      parent: Uint32Array.of(kNoParent, 0, 0, 0),
      depth: Uint16Array.of(0, 1, 1, 1),
      flags: Uint8Array.from(flags),
    };
    const json = {
      version: 1,
      kind: "calls",
      trace: { span: 1000, functions: { name: ["main", "f"] }, tracks: [{ id: 0, kind: "thread", owner: 0 }] },
    };
    return LocalBackend.open({ ...json, columns: pack(encodeColumns([columns], { forkedAt })) }, engine());
  };
  const row = async (backend: LocalBackend, func: number) =>
    (await backend.functions({})).rows.find((r) => r.function === func)!;

  test("a call that a switch of stacks interrupted is one call", async () => {
    const backend = await three([0, 64 | 2, 32 | 1, 0]);
    const f = await row(backend, 1);
    expect([f.calls, f.openCalls, f.total, f.self, f.max]).toEqual([2, 1, 550, 550, 250]);
    const histogram = await backend.histogram(1);
    expect([histogram.calls, histogram.openCalls]).toEqual([2, 1]);
    expect((await backend.flame({}, {})).calls).toBe(3);
    expect((await backend.occurrences({ function: 1, order: "time", direction: "next" })).count).toBe(2);
  });

  test("a call that a child inherited is its parent's until the fork", async () => {
    const backend = await three([128, 0, 0, 0], 60);
    const main = await row(backend, 0);
    expect([main.calls, main.total, main.self, main.max]).toEqual([0, 940, 390, null]);
    expect((await row(backend, 1)).calls).toBe(3);
    expect((await backend.call({ thread: 0, index: 0 })).flags).toBe(128);
    const tiles = await backend.tiles({ begin: 0, end: 1000, width: 1000, levels: [{ track: 0, from: 0, to: 0 }] });
    expect(tiles.get(0)![0]!.flags[0]! & kSummed).toBe(0);
  });

  test("a histogram has quarter octaves of ticks, as the server's", async () => {
    const histogram = await (await three([0, 0, 0, 0])).histogram(1);
    // 100, 200 and 250 ns: from 96 to 256.
    expect(histogram.edges).toEqual([96, 112, 128, 160, 192, 224, 256]);
    expect(histogram.counts).toEqual([1, 0, 0, 0, 1, 1]);
    expect(histogram.calls).toBe(3);
  });
});

test("search counts calls; a bad pattern is said to be one", async () => {
  const backend = await open();
  expect((await backend.search("work")).functions).toEqual([3]);
  expect((await backend.search("work")).calls).toBe(of(3).length);
  await expect(backend.search("(")).rejects.toThrow();
});

test("source with the function's last line; none is said to be missing", async () => {
  const backend = await open();
  const source = await backend.source(1);
  expect([source.line, source.endLine]).toEqual([5, 8]);
  await expect(backend.source(5)).rejects.toThrow(/No source/);
  const lines = await Engine.open(engine());
  expect(lines.endLine("int f();\nint g() { return '}'; }\n", 1)).toBe(1);
  expect(lines.endLine('void f() {\n  puts("}");  // }\n}\n', 1)).toBe(3);
  // What the page once took for the end: the first of two initialisers, a brace in a comment or in a raw string.
  expect(lines.endLine("A::A()\n  : x{1},\n    y{2} {\n  z();\n}\n", 1)).toBe(5);
  expect(lines.endLine("f()\n{\n  /* } */\n}\n", 1)).toBe(4);
  expect(lines.endLine('f() {\n  auto s = R"x(}\n)x";\n}\n', 1)).toBe(4);
});

test("aggregated pages say that they hold no calls", async () => {
  const json = sampleEmbedded(1, 2);
  await expect(LocalBackend.open({ ...json, version: 2 }, engine())).rejects.toThrow(/version/);
});
