// SPDX-License-Identifier: MIT
// The page's questions, put into the words of docs/viewer-protocol.md, and what comes back as the page's own types.
import {
  explanations,
  findingAnswers,
  flowAnswers,
  lockAnswers,
  occurrenceAnswers,
  slowAnswers,
  stateLines,
  type Explanation,
  type FindingAnswer,
  type FlowAnswer,
  type LockAnswer,
  type SlowAnswer,
} from "./answers";
import { byTrack, decodeMinimap } from "./decode";
import {
  alignFacts,
  callFacts,
  callValues,
  flameFacts,
  histogramFacts,
  noteFacts,
  noteMarks,
  colouredCalls,
  plotParts,
  sourceFacts,
  tableFacts,
  threadSumsOf,
  traceFacts,
  type Json,
} from "./facts";
import { frameFacts } from "./frame_facts";
import { callMemory } from "./memory_facts";
import { rowOf } from "./rows";
import { checkAnswer, sqlAnswer, sqlSchema } from "./sql_facts";
import type { Parameters, Transport } from "./transport";
import type { Backend, Scope, SourceText } from "./types/backend";
import type { CallInfo, CallRef, CallValues, Histogram, Occurrences, OccurrenceQuery, StateLine } from "./types/calls";
import type { FrameFacts } from "./types/frames";
import type { LateList } from "./types/late";
import type { CallMemory } from "./types/memory";
import type { ColouredCalls, NoteGroup, NoteLine, NoteMark, NoteQuery, PlotPart } from "./types/notes";
import type { Alignment, AlignSide, Flame, FlameQuery, FunctionTable, ThreadSums, TimeOf } from "./types/sums";
import type { CheckAnswer, SqlAnswer, SqlSchema } from "./types/sql";
import type { Row, TileRequest } from "./types/tiles";
import type { TraceInfo } from "./types/trace";

function scopeParameters(scope: Scope, prefix = ""): Parameters {
  const parameters: Parameters = {};
  for (const key of ["begin", "end", "thread", "index", "function"] as const)
    if (scope[key] !== undefined) parameters[prefix + key] = scope[key];
  if (scope.threads) parameters[`${prefix}threads`] = scope.threads.join(",");
  if (scope.raw) parameters.raw = 1;
  if (scope.beside !== undefined) parameters["b.trace"] = scope.beside;
  return parameters;
}

export class Questions implements Backend {
  readonly kind: "server" | "embedded";
  readonly picture?: { readonly begin: number; readonly pixelNs: number };
  private canCut = false;
  /** While the trace is being read: resolves when trace() has had the facts of all of it. */
  private whole: Promise<void> | undefined;
  private isWhole = () => {};

  constructor(private readonly transport: Transport) {
    this.kind = transport.kind;
    if (transport.picture) this.picture = transport.picture;
  }

  private async json(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Json> {
    if (this.whole) {
      await this.whole;
      if (signal?.aborted) throw new DOMException("aborted", "AbortError");
    }
    return await this.transport.json(path, parameters, signal);
  }

  async trace(): Promise<TraceInfo> {
    const facts = traceFacts(await this.transport.json("trace", {}));
    this.canCut = facts.canCut;
    if (facts.reading) this.whole ??= new Promise((resolve) => (this.isWhole = resolve));
    else {
      this.whole = undefined;
      this.isWhole();
    }
    return facts;
  }

  readFirst(threads: readonly number[]): void {
    this.transport.wish?.("first", { threads: threads.join(",") });
  }

  async tiles(request: TileRequest, signal?: AbortSignal): Promise<Map<number, Row[]>> {
    const { begin, end, width, levels } = request;
    if (request.function !== undefined) await this.whole;
    const tracks = levels.map(({ track, from, to }) => `${track}:${from}-${to}`).join(",");
    const answer = await this.transport.tiles({ begin, end, width, tracks, function: request.function }, signal);
    return byTrack(answer, levels);
  }

  async minimap(width: number, of?: TimeOf): Promise<Uint8Array[]> {
    await this.whole;
    return decodeMinimap(await this.transport.bytes("minimap", { width, of }));
  }

  async call(at: CallRef, raw: boolean): Promise<CallInfo> {
    return callFacts(await this.json("call", { ...at, raw: raw ? 1 : undefined }));
  }

  async values(thread: number, indices: readonly number[], signal?: AbortSignal): Promise<Map<number, CallValues>> {
    return callValues(await this.json("values", { thread, index: indices.join(",") }, signal));
  }

  async occurrences({ at, raw, ...query }: OccurrenceQuery, signal?: AbortSignal): Promise<Occurrences> {
    return rowOf(
      await this.json("occurrences", { ...query, ...at, raw: raw ? 1 : undefined }, signal),
      occurrenceAnswers,
    );
  }

  async histogram(func: number, raw: boolean, signal?: AbortSignal): Promise<Histogram> {
    return histogramFacts(await this.json("histogram", { function: func, raw: raw ? 1 : undefined }, signal));
  }

  async functions(scope: Scope, signal?: AbortSignal): Promise<FunctionTable> {
    return tableFacts(await this.json("functions", scopeParameters(scope), signal));
  }

  async outliers(scope: Scope, signal?: AbortSignal): Promise<SlowAnswer> {
    return rowOf(await this.json("outliers", scopeParameters(scope), signal), slowAnswers);
  }

  async explain(at: CallRef, signal?: AbortSignal): Promise<Explanation> {
    return rowOf(await this.json("explain", { ...at }, signal), explanations);
  }

  async list<Of>({ path, read }: LateList<Of>, signal?: AbortSignal): Promise<Of> {
    return read(await this.json(path, {}, signal));
  }

  async notes(
    scope: Scope,
    { text, groups, newest, limit }: NoteQuery,
    signal?: AbortSignal,
  ): Promise<{ count: number; notes: NoteLine[] }> {
    const parameters: Parameters = {
      ...scopeParameters(scope),
      q: text === "" ? undefined : text,
      kind: groups?.join(","),
      order: newest ? "newest" : undefined,
      limit,
    };
    return noteFacts(await this.json("notes", parameters, signal));
  }

  async noteMarks(
    scope: Scope,
    width: number,
    groups: readonly NoteGroup[],
    signal?: AbortSignal,
  ): Promise<NoteMark[]> {
    const parameters: Parameters = { ...scopeParameters(scope), width, kind: groups.join(",") };
    return noteMarks(await this.json("notes", parameters, signal));
  }

  async colours(scope: Scope, leastNs: number, signal?: AbortSignal): Promise<ColouredCalls> {
    const parameters: Parameters = { ...scopeParameters(scope), least: Math.max(0, Math.round(leastNs)) };
    return colouredCalls(await this.json("colors", parameters, signal));
  }

  async plotParts(range: Scope, width: number, plots: readonly number[], signal?: AbortSignal): Promise<PlotPart[]> {
    const parameters: Parameters = { ...scopeParameters(range), width, plot: plots.join(",") };
    return plotParts(await this.json("plots", parameters, signal));
  }

  async frame(set: number, target: number, number?: number, signal?: AbortSignal): Promise<FrameFacts> {
    return frameFacts(await this.json("frame", { set, target, number }, signal));
  }

  async lock(at: CallRef): Promise<LockAnswer> {
    return rowOf(await this.json("lock", { ...at }), lockAnswers);
  }

  async holder(lock: number, holder: number): Promise<LockAnswer> {
    return rowOf(await this.json("lock", { lock, holder }), lockAnswers);
  }

  async flows(at: CallRef, signal?: AbortSignal): Promise<FlowAnswer> {
    return rowOf(await this.json("flows", { ...at }, signal), flowAnswers);
  }

  async memory(at: CallRef, signal?: AbortSignal): Promise<CallMemory> {
    return callMemory(await this.json("memory", { ...at }, signal));
  }

  async threads(scope: Scope): Promise<ThreadSums> {
    return threadSumsOf(await this.json("threads", scopeParameters(scope)));
  }

  async flame(scope: Scope, query: FlameQuery, signal?: AbortSignal): Promise<Flame> {
    const parameters: Parameters = {
      ...scopeParameters(scope),
      inverted: query.inverted ? 1 : undefined,
      by: query.by,
      path: query.path?.length ? query.path.join(",") : undefined,
    };
    if (query.b) Object.assign(parameters, scopeParameters(query.b, "b."), { "b.trace": query.b.trace ?? 0 });
    return flameFacts(await this.json("flame", parameters, signal));
  }

  async findings(b: number, raw: boolean, signal?: AbortSignal): Promise<FindingAnswer> {
    return rowOf(await this.json("findings", { "b.trace": b, raw: raw ? 1 : undefined }, signal), findingAnswers);
  }

  async align(a: AlignSide, b: AlignSide, raw: boolean, signal?: AbortSignal): Promise<Alignment> {
    const parameters = {
      raw: raw ? 1 : undefined,
      thread: a.thread,
      index: a.index,
      "b.trace": b.trace,
      "b.thread": b.thread,
      "b.index": b.index,
    };
    return alignFacts(await this.json("align", parameters, signal));
  }

  async search(pattern: string): Promise<{ functions: number[]; calls: number }> {
    const json = await this.json("search", { q: pattern });
    return { functions: json.functions ?? [], calls: json.calls ?? 0 };
  }

  async state(thread: number, index: number): Promise<StateLine> {
    return rowOf(await this.json("state", { thread, index }), stateLines);
  }

  async source(func: number): Promise<SourceText> {
    return sourceFacts(await this.json("source", { function: func }));
  }

  async sql(text: string, raw: boolean, signal: AbortSignal): Promise<SqlAnswer> {
    return sqlAnswer(await this.json("query", { sql: text, raw: raw ? 1 : undefined }, signal));
  }

  async check(raw: boolean, signal: AbortSignal): Promise<CheckAnswer> {
    return checkAnswer(await this.json("check", { raw: raw ? 1 : undefined }, signal));
  }

  async schema(signal: AbortSignal): Promise<SqlSchema> {
    return sqlSchema(await this.json("schema", {}, signal));
  }

  async callAt(thread: number, begin: number): Promise<CallInfo> {
    return callFacts(await this.json("call", { thread, at: begin, raw: 1 }));
  }

  cutAddress(begin: number, end: number): string | undefined {
    return this.canCut ? this.transport.fileAddress?.("cut", { begin, end }) : undefined;
  }
}
