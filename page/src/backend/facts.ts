// Answers in JSON to the page's own types. What is missing gets a value that shows as nothing: a
// page must not fail because a fact does.
import { NOTE_GROUPS } from "./protocol";
import type { NoteGroup, NoteLine, NoteMark } from "./types/notes";
import { requestAnswers, type RequestAnswer } from "./answers";
import { rowOf } from "./rows";
import type { SourceText } from "./types/backend";
import type { LateList } from "./types/late";
import type { CallInfo, CallLine, CallValues, Histogram, Occurrences, StateLine, StateTimes } from "./types/calls";
import type { ColouredCalls, PlotInfo, PlotPart } from "./types/notes";
import type { Alignment, Flame, FunctionRow, FunctionTable, ThreadSums } from "./types/sums";
import type { FunctionInfo, ProcessInfo, ThreadInfo, TraceInfo } from "./types/trace";

// `Json` is what JSON.parse gives, taken apart field by field.
export type Json = Record<string, any>;

export const num = (value: unknown, otherwise = 0): number => (typeof value === "number" ? value : otherwise);
export const maybe = (value: unknown): number | null => (typeof value === "number" ? value : null);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
const list = (value: unknown): any[] => (Array.isArray(value) ? value : []);
export const object = (value: unknown): Json => (typeof value === "object" && value !== null ? value : {});
export const objects = (value: unknown): Json[] => list(value).map(object);

function processFacts(p: Json, index: number): ProcessInfo {
  return {
    index,
    pid: num(p.pid),
    name: text(p.name),
    commandLine: list(p.command_line).map(text),
    appInfo: list(p.app_info).map(text),
    executable: text(p.executable),
    options: text(p.options),
    waitStatus: maybe(p.wait_status),
    callCost: num(p.call_cost),
    damaged: p.damaged === true,
    overwrittenEvents: num(p.overwritten_events),
    lostEvents: num(p.lost_events),
    switches: objects(p.switches).map((s) => ({
      begin: num(s.begin),
      end: maybe(s.end),
      all: s.all === true,
      first: num(s.first),
      ids: num(s.ids, num(s.functions)),
      functions: num(s.functions),
      on: s.on === true,
      reason: text(s.reason),
      named: list(s.named).map((f) => num(f, -1)),
    })),
    switchCount: num(p.switch_count),
    moments: objects(p.moments).map((m) => ({
      number: num(m.number),
      kind: text(m.kind),
      begin: num(m.begin),
      end: num(m.end),
      thread: num(m.thread, -1),
      what: text(m.what),
      lostEvents: num(m.lost_events),
      ...optional("index", typeof m.index === "number" ? m.index : undefined),
      ...optional("function", typeof m.function === "number" ? m.function : undefined),
    })),
  };
}

/** Whether a trace has notes of one of the groups. */
export const says = ({ threads }: TraceInfo, ...groups: readonly NoteGroup[]): boolean =>
  threads.some(({ notes }) => groups.some((group) => (notes[group] ?? 0) > 0));

function noteCounts(json: Json): Partial<Record<NoteGroup, number>> {
  const counts: Partial<Record<NoteGroup, number>> = {};
  for (const group of NOTE_GROUPS) if (num(json[group]) > 0) counts[group] = num(json[group]);
  return counts;
}

/** What is not known of its end is that of the trace. */
function threadInfo(t: Json, index: number, span: number, extent: number): ThreadInfo {
  return {
    index,
    process: num(t.process),
    tid: num(t.tid),
    fiber: t.fiber === true,
    name: text(t.name),
    begin: num(t.begin),
    end: num(t.end, extent),
    first: num(t.first, num(t.begin)),
    last: num(t.last, num(t.end, span)),
    exited: t.exited === true,
    calls: num(t.calls),
    maxDepth: num(t.depths),
    overwrittenEvents: num(t.overwritten_events),
    lostEvents: num(t.lost_events),
    missingExits: num(t.missing_exits),
    gaps: objects(t.gaps).map((g) => ({
      begin: num(g.begin),
      end: num(g.end),
      kind: g.kind === "missing" ? "missing" : "overwritten",
      blocks: num(g.blocks),
    })),
    states: t.states === true,
    notes: noteCounts(object(t.notes)),
    ...optional("group", typeof t.group === "string" ? t.group : undefined),
    ...optional("unreadFrom", typeof t.unread_from === "number" ? t.unread_from : undefined),
  };
}

const MOST_FUNCTIONS = 1 << 24;

/** By their numbers; those that do not occur are holes. */
function functionFacts(json: Json): FunctionInfo[] {
  const f = object(json.functions);
  const modules = list(json.modules);
  const files = list(json.files);
  const hasSource = list(json.has_source);
  const functions: FunctionInfo[] = [];
  list(f.name).forEach((name, i) => {
    const number = num(f.number?.[i], i);
    const file = num(f.file?.[i], -1);
    if (!Number.isInteger(number) || number < 0 || number >= MOST_FUNCTIONS) return;
    functions[number] = {
      name: text(name),
      module: text(modules[num(f.module?.[i], -1)]),
      file: text(files[file]),
      line: num(f.line?.[i]),
      calls: num(f.calls?.[i]),
      hasSource: hasSource[file] === true,
    };
  });
  const colours = list(f.colors);
  list(f.colored).forEach((number, i) => {
    const of = functions[num(number, -1)];
    if (of) of.colour = num(colours[i]);
  });
  const count = num(f.count);
  if (Number.isInteger(count) && count > functions.length && count <= MOST_FUNCTIONS) functions.length = count;
  return functions;
}

const sampledFacts = (json: Json) => ({
  ...{ period: num(json.period), samples: num(json.samples), lost: num(json.lost), kernel: json.kernel === true },
  functions: objects(json.functions).map((f) => ({
    ...{ name: text(f.name), module: text(f.module), file: text(f.file), line: num(f.line) },
  })),
});

export function traceFacts(answer: Json): TraceInfo {
  const json = object(answer);
  const span = num(json.span);
  const extent = Math.max(span, num(json.extent, span));
  return {
    version: text(json.version),
    name: text(json.name),
    path: text(json.path),
    fileSize: num(json.file_size),
    complete: json.complete !== false,
    traces: num(json.traces, 1),
    span,
    extent,
    calls: num(json.calls),
    resolutionNs: num(json.clock?.resolution_ns),
    startRealtimeNs: json.clock?.start_realtime_ns ? text(json.clock.start_realtime_ns) : null,
    problems: objects(json.problems).map((p) => ({ message: text(p.message), count: num(p.count, 1) })),
    processes: objects(json.processes).map(processFacts),
    threads: objects(json.threads).map((t, index) => threadInfo(t, index, span, extent)),
    tracks: objects(json.tracks).map((t) => ({
      id: num(t.id),
      kind: text(t.kind),
      name: text(t.name),
      owner: num(t.owner),
      lanes: num(t.lanes),
    })),
    functions: functionFacts(json),
    valued: new Set(list(json.values).map((f) => num(f, -1))),
    hasMemory: json.memory === true,
    hasFlows: json.flows === true,
    sampled: json.sampled ? sampledFacts(object(json.sampled)) : null,
    lockWaits: new Set(list(json.lock_waits).map((f) => num(f, -1))),
    canCut: list(json.features).includes("cut"),
    ...optional("range", json.range ? { begin: num(json.range.begin), end: num(json.range.end, extent) } : undefined),
    ...(json.aggregated ? { aggregated: true as const } : {}),
    ...(json.reading ? { reading: true as const } : {}),
    states: json.states
      ? {
          backend: text(json.states.backend),
          wakes: json.states.wakes === true,
          others: json.states.others === true,
          syscalls: json.states.syscalls === true,
          clockErrorNs: num(json.states.clock_error_ns),
          lostEvents: num(json.states.lost_events),
          note: text(json.states.note),
        }
      : null,
    tasks: objects(json.tasks).map((t) => ({
      tid: num(t.tid),
      pid: num(t.pid),
      name: text(t.name),
      ofRun: t.of_run === true,
      thread: num(t.thread, -1),
    })),
    cpus: objects(json.cpus).map((c) => ({
      cpu: num(c.cpu),
      gaps: objects(c.gaps).map((g) => ({ begin: num(g.begin), end: num(g.end), lost: num(g.lost) })),
    })),
  };
}

/** A call that an answer tells of beside something else, as of a step or of who has a lock; undefined: it tells of none. */
export const callOf = (json: Json) =>
  typeof json.index === "number"
    ? {
        ...{ index: json.index, function: num(json.function), begin: num(json.call_begin) },
        ...{ duration: num(json.call_duration), depth: num(json.depth) },
      }
    : undefined;

export const optional = <K extends string, T>(key: K, value: T | undefined): { [P in K]?: T } =>
  value === undefined ? {} : ({ [key]: value } as { [P in K]?: T });

export function stateTimes(json: Json | undefined): StateTimes | undefined {
  if (!json) return undefined;
  return { cpu: num(json.cpu), runnable: num(json.runnable), blocked: num(json.blocked), unknown: num(json.unknown) };
}

export function stateLine(json: Json): StateLine {
  const line: StateLine = {
    index: num(json.index),
    begin: num(json.begin),
    duration: num(json.duration),
    runnable: num(json.runnable),
    state: text(json.state),
    words: text(json.words),
    where: text(json.where),
    who: text(json.by),
    keptOffBy: objects(json.kept_off_by).map((share) => ({
      ...{ name: text(share.name), duration: num(share.duration) },
      ...optional("function", typeof share.function === "number" ? share.function : undefined),
    })),
  };
  if (typeof json.by_index === "number")
    line.by = {
      thread: num(json.by_thread),
      index: json.by_index,
      function: num(json.by_function),
      depth: num(json.by_depth),
    };
  return line;
}

export function callLine(json: Json): CallLine {
  return {
    index: num(json.index),
    function: num(json.function),
    begin: num(json.begin),
    duration: num(json.duration),
    flags: num(json.flags),
  };
}

function valuesFacts(json: Json): CallValues | undefined {
  const some = (values: unknown) => objects(values).map((one) => ({ name: text(one.name), text: text(one.text) }));
  const values = { arguments: some(json.arguments), returned: some(json.returned) };
  return values.arguments.length + values.returned.length > 0 ? values : undefined;
}

/** By the calls' places in their thread. */
export function callValues(answer: Json): Map<number, CallValues> {
  const found = new Map<number, CallValues>();
  for (const call of objects(object(answer).calls)) {
    const values = valuesFacts(call);
    if (values) found.set(num(call.index, -1), values);
  }
  return found;
}

export function callFacts(answer: Json): CallInfo {
  const json = object(answer);
  return {
    ...callLine(json),
    thread: num(json.thread),
    took: num(json.took),
    self: num(json.self),
    depth: num(json.depth),
    parents: objects(json.parents).map(callLine),
    moreParents: num(json.more_parents),
    children: {
      count: num(json.children?.count),
      functions: objects(json.children?.functions).map((c) => ({
        function: num(c.function),
        calls: num(c.calls),
        total: num(c.total),
        longest: num(c.longest),
      })),
      moreFunctions: num(json.children?.more_functions),
      longest: objects(json.children?.longest).map(callLine),
    },
    subtreeCalls: num(json.subtree_calls),
    ...optional("values", valuesFacts(json)),
    ...optional("states", stateTimes(json.states)),
    ...optional("selfStates", stateTimes(json.self_states)),
    waits: objects(json.waits).map(stateLine),
  };
}

export function occurrenceFacts(json: Json): Occurrences {
  return {
    function: num(json.function),
    count: num(json.count),
    rank: num(json.rank),
    calls: objects(json.calls).map((c) => ({ ...callLine(c), thread: num(c.thread), took: num(c.took) })),
  };
}

export const requestFacts = (answer: Json): RequestAnswer => rowOf(object(answer), requestAnswers);

export const REQUESTS: LateList<RequestAnswer> = {
  path: "requests",
  read: requestFacts,
  has: (info) => says(info, "request"),
};

function noteLine(n: Json): NoteLine {
  return {
    time: num(n.time),
    thread: num(n.thread),
    kind: text(n.kind),
    group: NOTE_GROUPS.find((group) => group === n.group) ?? "other",
    line: text(n.line),
    ...optional("index", typeof n.index === "number" ? n.index : undefined),
    ...optional("function", typeof n.function === "number" ? n.function : undefined),
    ...optional("colour", typeof n.color === "number" ? n.color : undefined),
  };
}

export function noteFacts(answer: Json): { count: number; notes: NoteLine[] } {
  const json = object(answer);
  const notes = objects(json.notes).map(noteLine);
  return { count: num(json.count, notes.length), notes };
}

export function noteMarks(answer: Json): NoteMark[] {
  return objects(object(answer).marks).map((mark) => ({
    ...noteLine(mark),
    count: num(mark.count, 1),
    last: num(mark.last, num(mark.time)),
  }));
}

export function plotFacts(answer: Json): PlotInfo[] {
  return objects(object(answer).plots).map((p) => ({
    process: num(p.process),
    name: text(p.name),
    count: num(p.count),
    min: num(p.min),
    max: num(p.max),
    ...optional("unit", typeof p.unit === "string" ? p.unit : undefined),
    ...optional("line", p.line === true ? (true as const) : undefined),
    ...optional("colour", typeof p.color === "number" ? p.color : undefined),
  }));
}

export const PLOTS: LateList<PlotInfo[]> = {
  path: "plots",
  read: plotFacts,
  has: (info) => says(info, "value", "frame", "record"),
};

export function colouredCalls(answer: Json): ColouredCalls {
  const json = object(answer);
  const column = (values: unknown) => list(values).map((n) => num(n));
  return {
    ...{ thread: column(json.thread), index: column(json.index), begin: column(json.begin) },
    ...{ duration: column(json.duration), depth: column(json.depth), colour: column(json.color) },
  };
}

export function plotParts(answer: Json): PlotPart[] {
  return objects(object(answer).plots).map((p) => {
    const at = list(p.at).map((n) => num(n));
    const column = (values: unknown) => at.map((_, i) => num(list(values)[i]));
    return {
      ...{ plot: num(p.plot), before: maybe(p.before), at },
      ...{ count: column(p.count), min: column(p.min), max: column(p.max), last: column(p.last) },
    };
  });
}

export function threadFacts(answer: Json): ThreadSums {
  const json = object(answer);
  const numbers = (value: unknown) => list(value).map((n) => num(n));
  return {
    depths: numbers(json.depths),
    cpu: numbers(json.cpu),
    runnable: numbers(json.runnable),
    blocked: numbers(json.blocked),
  };
}

export function histogramFacts(json: Json): Histogram {
  return {
    function: num(json.function),
    calls: num(json.calls),
    openCalls: num(json.open_calls),
    min: maybe(json.min),
    p50: maybe(json.p50),
    p99: maybe(json.p99),
    max: maybe(json.max),
    mean: maybe(json.mean),
    edges: list(json.edges).map((e) => num(e)),
    counts: list(json.counts).map((c) => num(c)),
  };
}

export function tableFacts(answer: Json): FunctionTable {
  const json = object(answer);
  const r = json.rows ?? {};
  return {
    calls: num(json.calls),
    openCalls: num(json.open_calls),
    busy: num(json.busy),
    ...optional("states", stateTimes(json.states)),
    rows: list(r.function).map((func, i): FunctionRow => ({
      function: num(func),
      calls: num(r.calls?.[i]),
      openCalls: num(r.open_calls?.[i]),
      total: num(r.total?.[i]),
      self: num(r.self?.[i]),
      min: maybe(r.min?.[i]),
      mean: maybe(r.mean?.[i]),
      p50: maybe(r.p50?.[i]),
      p99: maybe(r.p99?.[i]),
      max: maybe(r.max?.[i]),
      cpu: maybe(r.cpu?.[i]),
      runnable: maybe(r.runnable?.[i]),
      blocked: maybe(r.blocked?.[i]),
      selfCpu: maybe(r.self_cpu?.[i]),
      selfRunnable: maybe(r.self_runnable?.[i]),
      selfBlocked: maybe(r.self_blocked?.[i]),
    })),
  };
}

export function flameFacts(answer: Json): Flame {
  const json = object(answer);
  const n = json.nodes ?? {};
  const flame: Flame = {
    total: num(json.total),
    calls: num(json.calls),
    truncated: json.truncated === true,
    parent: Int32Array.from(list(n.parent)),
    func: Int32Array.from(list(n.function)),
    totals: Float64Array.from(list(n.total)),
    selfs: Float64Array.from(list(n.self)),
    counts: Float64Array.from(list(n.calls)),
    merged: Float64Array.from(list(n.merged)),
    extraFunctions: list(json.extra_functions).map(text),
  };
  if (Array.isArray(n.total_b)) {
    flame.b = {
      total: num(json.total_b),
      totals: Float64Array.from(n.total_b),
      selfs: Float64Array.from(list(n.self_b)),
      counts: Float64Array.from(list(n.calls_b)),
    };
  }
  return flame;
}

export function alignFacts(json: Json): Alignment {
  const n = json.nodes ?? {};
  return {
    parent: Int32Array.from(list(n.parent)),
    func: Int32Array.from(list(n.function)),
    index: [Int32Array.from(list(n.index)), Int32Array.from(list(n.index_b))],
    has: [Uint8Array.from(list(n.has)), Uint8Array.from(list(n.has_b))],
    begin: [Float64Array.from(list(n.begin)), Float64Array.from(list(n.begin_b))],
    duration: [Float64Array.from(list(n.duration)), Float64Array.from(list(n.duration_b))],
    took: [Float64Array.from(list(n.took)), Float64Array.from(list(n.took_b))],
    extraFunctions: list(json.extra_functions).map(text),
    truncated: json.truncated === true,
  };
}

export function sourceFacts(json: Json): SourceText {
  const line = num(json.line);
  return {
    path: text(json.path),
    line,
    endLine: num(json.end_line, line),
    firstLine: num(json.first_line, 1),
    text: text(json.text),
  };
}
