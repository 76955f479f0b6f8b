// Sums over columns in memory: the table of functions, histograms, flame graphs. Exact, by the rules
// of docs/viewer-protocol.md.
import { kNoParent, type Columns } from "./decode";
import { isComplete, subtreeEnd } from "./local_calls";
import { minus, plus, type LocalStates } from "./local_states";
import type { Flame, FlameQuery, FunctionRow, FunctionTable, Histogram, Scope, StateTimes } from "./types";

const NOTHING: StateTimes = { cpu: 0, runnable: 0, blocked: 0, unknown: 0 };

type Threads = Map<number, Columns>;

/** The rows of a scope, thread by thread: `visit(columns, from, to, clip)` with the range of time to count. */
function within(
  threads: Threads,
  scope: Scope,
  visit: (c: Columns, from: number, to: number, clip: [number, number], thread: number) => void,
) {
  const clip: [number, number] = [scope.begin ?? -Infinity, scope.end ?? Infinity];
  if (scope.thread !== undefined && scope.index !== undefined) {
    const columns = threads.get(scope.thread);
    if (columns) visit(columns, scope.index, subtreeEnd(columns, scope.index), clip, scope.thread);
    return;
  }
  for (const [thread, columns] of threads)
    if (!scope.threads || scope.threads.includes(thread)) visit(columns, 0, columns.begin.length, clip, thread);
}

function clipped(columns: Columns, i: number, [begin, end]: [number, number]): number {
  const from = columns.begin[i]!;
  return Math.max(0, Math.min(from + columns.duration[i]!, end) - Math.max(from, begin));
}

function overlaps(columns: Columns, i: number, [begin, end]: [number, number]): boolean {
  const from = columns.begin[i]!;
  return from < end && (from + columns.duration[i]! > begin || from >= begin);
}

/** Nearest rank: the shortest that at least `share` of all do not exceed. */
function rank(sorted: Float64Array, share: number): number | null {
  return sorted.length === 0 ? null : sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!;
}

export function functionTable(threads: Threads, scope: Scope, states?: LocalStates): FunctionTable {
  interface Sum {
    calls: number;
    open: number;
    total: number;
    self: number;
    durations: number[];
    totalStates: StateTimes;
    selfStates: StateTimes;
  }
  const sums = new Map<number, Sum>();
  const of = (func: number): Sum => {
    let sum = sums.get(func);
    if (!sum)
      sums.set(
        func,
        (sum = { calls: 0, open: 0, total: 0, self: 0, durations: [], totalStates: NOTHING, selfStates: NOTHING }),
      );
    return sum;
  };
  let calls = 0;
  within(threads, scope, (c, from, to, clip, thread) => {
    const own = states?.of(thread);
    const onStack = new Map<number, number>();
    const stack: { end: number; func: number }[] = [];
    for (let i = from; i < to; ++i) {
      while (stack.length > 0 && stack[stack.length - 1]!.end <= i) {
        const { func } = stack.pop()!;
        onStack.set(func, onStack.get(func)! - 1);
      }
      const func = c.func[i]!;
      const depth = onStack.get(func) ?? 0;
      if (overlaps(c, i, clip)) {
        const time = clipped(c, i, clip);
        const sum = of(func);
        ++calls;
        ++sum.calls;
        if (depth === 0) sum.total += time;
        sum.self += time;
        const up = c.parent[i]!;
        if (up !== kNoParent && up >= from) of(c.func[up]!).self -= time;
        if (states) {
          const low = Math.max(c.begin[i]!, clip[0]);
          const high = Math.min(c.begin[i]! + c.duration[i]!, clip[1]);
          const times = own ? own.between(low, high) : { ...NOTHING, unknown: Math.max(0, high - low) };
          if (depth === 0) sum.totalStates = plus(sum.totalStates, times);
          sum.selfStates = plus(sum.selfStates, times);
          if (up !== kNoParent && up >= from) of(c.func[up]!).selfStates = minus(of(c.func[up]!).selfStates, times);
        }
        if (isComplete(c.flags[i]!)) sum.durations.push(c.duration[i]!);
        else ++sum.open;
      }
      onStack.set(func, depth + 1);
      stack.push({ end: subtreeEnd(c, i), func });
    }
  });
  let busy = 0;
  let openCalls = 0;
  const rows: FunctionRow[] = [];
  for (const [func, sum] of sums) {
    busy += sum.self;
    openCalls += sum.open;
    const sorted = Float64Array.from(sum.durations).sort();
    rows.push({
      function: func,
      calls: sum.calls,
      openCalls: sum.open,
      total: sum.total,
      self: sum.self,
      min: sorted[0] ?? null,
      mean: sorted.length ? sorted.reduce((a, b) => a + b, 0) / sorted.length : null,
      p50: rank(sorted, 0.5),
      p99: rank(sorted, 0.99),
      max: sorted[sorted.length - 1] ?? null,
      cpu: states ? sum.totalStates.cpu : null,
      runnable: states ? sum.totalStates.runnable : null,
      blocked: states ? sum.totalStates.blocked : null,
      selfCpu: states ? sum.selfStates.cpu : null,
      selfRunnable: states ? sum.selfStates.runnable : null,
      selfBlocked: states ? sum.selfStates.blocked : null,
    });
  }
  const all = [...sums.values()].reduce((times, sum) => plus(times, sum.selfStates), NOTHING);
  return { calls, openCalls, busy, rows, ...(states ? { states: all } : {}) };
}

export function histogramOf(threads: Threads, func: number): Histogram {
  const durations: number[] = [];
  let openCalls = 0;
  for (const c of threads.values())
    for (let i = 0; i < c.func.length; ++i) {
      if (c.func[i] !== func) continue;
      if (isComplete(c.flags[i]!)) durations.push(c.duration[i]!);
      else ++openCalls;
    }
  const sorted = Float64Array.from(durations).sort();
  const edges: number[] = [];
  const counts: number[] = [];
  if (sorted.length > 0) {
    const most = sorted[sorted.length - 1]!;
    let edge = 2 ** (Math.floor(Math.log2(Math.max(sorted[0]!, 1)) * 4) / 4);
    if (sorted[0]! < 1) edge = 0;
    edges.push(edge);
    let at = 0;
    do {
      edge = edge === 0 ? 1 : edge * 2 ** 0.25;
      let n = 0;
      for (; at < sorted.length && (sorted[at]! < edge || (edge >= most && sorted[at]! <= edge)); ++at) ++n;
      edges.push(edge);
      counts.push(n);
    } while (at < sorted.length);
  }
  return {
    function: func,
    calls: durations.length,
    openCalls,
    min: sorted[0] ?? null,
    p50: rank(sorted, 0.5),
    p99: rank(sorted, 0.99),
    max: sorted[sorted.length - 1] ?? null,
    mean: sorted.length ? sorted.reduce((a, b) => a + b, 0) / sorted.length : null,
    edges,
    counts,
  };
}

interface Node {
  func: number;
  up: number;
  total: number;
  self: number;
  calls: number;
  children: Map<number, number>;
}

class Tree {
  readonly nodes: Node[] = [{ func: -1, up: -1, total: 0, self: 0, calls: 0, children: new Map() }];
  child(up: number, func: number): number {
    const children = this.nodes[up]!.children;
    let node = children.get(func);
    if (node === undefined) {
      node = this.nodes.push({ func, up, total: 0, self: 0, calls: 0, children: new Map() }) - 1;
      children.set(func, node);
    }
    return node;
  }
}

function topDown(threads: Threads, scope: Scope): Tree {
  const tree = new Tree();
  within(threads, scope, (c, from, to, clip) => {
    const nodeOf = new Int32Array(to - from).fill(-1);
    for (let i = from; i < to; ++i) {
      const up = c.parent[i]!;
      const above = up !== kNoParent && up >= from ? nodeOf[up - from]! : -1;
      // With a function given, only what is below its outermost calls.
      if (scope.function !== undefined && above < 0 && c.func[i] !== scope.function) continue;
      if (!overlaps(c, i, clip)) continue;
      const node = tree.child(Math.max(above, 0), c.func[i]!);
      nodeOf[i - from] = node;
      const time = clipped(c, i, clip);
      tree.nodes[node]!.total += time;
      tree.nodes[node]!.self += time;
      tree.nodes[node]!.calls++;
      tree.nodes[0]!.calls++;
      if (above > 0) tree.nodes[above]!.self -= time;
      else tree.nodes[0]!.total += time;
    }
  });
  return tree;
}

/** From each function to its callers, by self time. */
function inverted(down: Tree): Tree {
  const tree = new Tree();
  tree.nodes[0]!.total = down.nodes[0]!.total;
  tree.nodes[0]!.calls = down.nodes[0]!.calls;
  for (let n = 1; n < down.nodes.length; ++n) {
    const { self, calls } = down.nodes[n]!;
    let at = 0;
    for (let up = n; up > 0; up = down.nodes[up]!.up) {
      at = tree.child(at, down.nodes[up]!.func);
      tree.nodes[at]!.total += self;
      tree.nodes[at]!.calls += calls;
    }
    tree.nodes[at]!.self += self;
  }
  return tree;
}

export function flameOf(threads: Threads, scope: Scope, query: FlameQuery, share = 0.0005): Flame {
  const down = topDown(threads, scope);
  const tree = query.inverted ? inverted(down) : down;
  let root = 0;
  for (const func of query.path ?? []) root = tree.nodes[root]!.children.get(func) ?? root;
  const least = tree.nodes[root]!.total * share;
  const out = {
    parent: [-1],
    func: [tree.nodes[root]!.func],
    node: [root],
    merged: [0],
    totals: [0],
    selfs: [0],
    counts: [0],
  };
  for (let i = 0; i < out.node.length; ++i) {
    const at = out.node[i]!;
    if (at < 0) continue;
    const node = tree.nodes[at]!;
    out.totals[i] = node.total;
    out.selfs[i] = node.self;
    out.counts[i] = node.calls;
    const children = [...node.children.values()].sort((a, b) => tree.nodes[b]!.total - tree.nodes[a]!.total);
    const small = children.filter((child) => tree.nodes[child]!.total < least);
    for (const child of children.slice(0, children.length - small.length)) {
      out.parent.push(i);
      out.func.push(tree.nodes[child]!.func);
      out.node.push(child);
      out.merged.push(0);
    }
    if (small.length > 0) {
      const time = small.reduce((sum, child) => sum + tree.nodes[child]!.total, 0);
      out.totals[out.parent.length] = time;
      out.selfs[out.parent.length] = time;
      out.counts[out.parent.length] = small.reduce((sum, child) => sum + tree.nodes[child]!.calls, 0);
      out.parent.push(i);
      out.func.push(-2);
      out.node.push(-1);
      out.merged.push(small.length);
    }
  }
  return {
    total: tree.nodes[root]!.total,
    calls: tree.nodes[root]!.calls,
    truncated: false,
    parent: Int32Array.from(out.parent),
    func: Int32Array.from(out.func),
    totals: Float64Array.from(out.totals),
    selfs: Float64Array.from(out.selfs),
    counts: Float64Array.from(out.counts),
    merged: Float64Array.from(out.merged),
    extraFunctions: [],
  };
}
