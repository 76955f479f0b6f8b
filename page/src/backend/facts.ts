// SPDX-License-Identifier: MIT
// Answers in JSON to the page's own types. What is missing gets a value that shows as nothing: a
// page must not fail because a fact does.
import { NOTE_GROUPS } from "./protocol";
import type { NoteGroup, NoteLine, NoteMark } from "./types/notes";
import {
  callInfos,
  functionTables,
  histograms,
  requestAnswers,
  sourceTexts,
  threadSums,
  traceFacts as columnsOfTrace,
  valueAnswers,
  type CallInfo,
  type FunctionTable,
  type Histogram,
  type RequestAnswer,
  type SourceText,
  type ThreadFact,
  type ThreadSums,
  type TraceFact,
} from "./answers";
import { object, rowOf, type Json } from "./rows";
import type { CallValues } from "./types/calls";
import type { ColouredCalls, PlotInfo, PlotPart } from "./types/notes";
import type { Alignment, Flame } from "./types/sums";
import type { FunctionInfo, ThreadInfo, TraceInfo } from "./types/trace";

export { object, type Json };

export const num = (value: unknown, otherwise = 0): number => (typeof value === "number" ? value : otherwise);
export const maybe = (value: unknown): number | null => (typeof value === "number" ? value : null);
export const text = (value: unknown): string => (typeof value === "string" ? value : "");
const list = (value: unknown): any[] => (Array.isArray(value) ? value : []);
export const objects = (value: unknown): Json[] => list(value).map(object);

/** Whether a trace has notes of one of the groups. */
export const says = ({ threads }: TraceInfo, ...groups: readonly NoteGroup[]): boolean =>
  threads.some(({ notes }) => groups.some((group) => (notes?.[group] ?? 0) > 0));

/** What is not known of its end is that of the trace. */
const threadInfo = (of: ThreadFact, index: number, span: number, extent: number): ThreadInfo => ({
  ...of,
  index,
  begin: of.begin ?? 0,
  end: of.end ?? extent,
  first: of.first ?? of.begin ?? 0,
  last: of.last ?? of.end ?? span,
  gaps: of.gaps.map((gap) => ({ ...gap, kind: gap.kind === "missing" ? "missing" : "overwritten" })),
});

const MOST_FUNCTIONS = 1 << 24;

/** By their numbers; those that do not occur are holes. */
function functionsOf({ functions: of, modules, files, hasSource }: TraceFact): FunctionInfo[] {
  const functions: FunctionInfo[] = [];
  of?.name.forEach((name, i) => {
    const number = of.number[i] ?? i;
    const file = of.file[i] ?? -1;
    if (!Number.isInteger(number) || number < 0 || number >= MOST_FUNCTIONS) return;
    functions[number] = {
      name,
      module: modules[of.module[i] ?? -1] ?? "",
      file: files[file] ?? "",
      line: of.line[i] ?? 0,
      calls: of.calls[i] ?? 0,
      hasSource: hasSource[file] === true,
    };
  });
  of?.colored.forEach((number, i) => {
    const zone = functions[number];
    if (zone) zone.colour = of.colors[i] ?? 0;
  });
  const count = of?.count ?? 0;
  if (Number.isInteger(count) && count > functions.length && count <= MOST_FUNCTIONS) functions.length = count;
  return functions;
}

export function traceFacts(answer: Json): TraceInfo {
  const of = rowOf(object(answer), columnsOfTrace);
  const extent = Math.max(of.span, of.extent);
  return {
    ...of,
    complete: object(answer).complete !== false,
    extent,
    reading: of.reading !== null,
    resolutionNs: of.clock?.resolutionNs ?? 0,
    startRealtimeNs: of.clock?.startRealtimeNs || null,
    processes: of.processes.map((process, index) => ({ ...process, index })),
    threads: of.threads.map((thread, index) => threadInfo(thread, index, of.span, extent)),
    functions: functionsOf(of),
    valued: new Set(of.values),
    hasMemory: of.memory,
    hasFlows: of.flows,
    lockWaits: new Set(of.lockWaits),
    canCut: of.features.includes("cut"),
    answersSql: of.features.includes("query"),
    aggregated: object(answer).aggregated === true,
  };
}

export const optional = <K extends string, T>(key: K, value: T | undefined): { [P in K]?: T } =>
  value === undefined ? {} : ({ [key]: value } as { [P in K]?: T });

/** Whether anything is noted of a call. */
export const hasValues = (of: CallValues): boolean => of.arguments.length + of.returned.length > 0;

/** By the calls' places in their thread. */
export const callValues = (answer: Json): Map<number, CallValues> =>
  new Map(
    rowOf(object(answer), valueAnswers)
      .calls.filter(hasValues)
      .map((call) => [call.index, call]),
  );

export const callFacts = (answer: Json): CallInfo => rowOf(object(answer), callInfos);

export const requestFacts = (answer: Json): RequestAnswer => rowOf(object(answer), requestAnswers);

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
    ...optional("usage", p.usage === "machine" || p.usage === "process" ? p.usage : undefined),
  }));
}

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

export const threadSumsOf = (answer: Json): ThreadSums => rowOf(object(answer), threadSums);

export const histogramFacts = (json: Json): Histogram => rowOf(object(json), histograms);

export const tableFacts = (answer: Json): FunctionTable => rowOf(object(answer), functionTables);

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

export const sourceFacts = (answer: Json): SourceText => rowOf(object(answer), sourceTexts);
