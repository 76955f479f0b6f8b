// SPDX-License-Identifier: MIT
// What docs/viewer-protocol.md says, as types. The backend is here, its answers are in the files beside this one.
// ../questions.ts asks; ../transport.ts says who answers.
import type { Explanation, FindingAnswer, FlowAnswer, SlowAnswer, SourceText } from "../answers";
import type { StateLine, CallRef, CallValues, CallInfo, Occurrences, OccurrenceQuery, Histogram } from "./calls";
import type { FrameFacts } from "./frames";
import type { LateList } from "./late";
import type { LockAnswer } from "../answers";
import type { CallMemory } from "./memory";
import type { ColouredCalls, NoteGroup, NoteLine, NoteMark, NoteQuery, PlotPart } from "./notes";
import type { ThreadSums, FunctionTable, Flame, TimeOf, FlameQuery, Alignment, AlignSide } from "./sums";
import type { CheckAnswer, SqlAnswer, SqlSchema } from "./sql";
import type { Row, TileRequest } from "./tiles";
import type { TraceInfo } from "./trace";

/** A part of a trace: a range of time in some threads (all when left out), or what happened within one call. */
export interface Scope {
  begin?: number;
  end?: number;
  threads?: readonly number[];
  thread?: number;
  index?: number;
  function?: number;
  /** Times as recorded; left out: without what tracing took. */
  raw?: boolean;
  /** Sums are compared with those of this trace: tracing is taken to cost as much in both. */
  beside?: number;
}

export type { SourceText } from "../answers";

export interface Progress {
  phase: "opening" | "rebuilding" | "ready" | "failed";
  done: number;
  total: number;
  /** Grows whenever there is more to be seen. */
  parts: number;
  error: string;
  files: string[];
  /** Of a trace that is still recorded: there is more in its file than was read. */
  grown?: boolean;
  /** Which reading of the files this is about. */
  generation: number;
}

/** A failure that a person can read. */
export class BackendError extends Error {
  constructor(
    message: string,
    readonly status = 0,
  ) {
    super(message);
  }
}

/** One trace. All answers are promises; an aborted signal rejects with the DOM's AbortError. */
export interface Backend {
  readonly kind: "server" | "embedded";
  /** When there is only one picture: where its pixels begin and how long they are, whatever is asked for. */
  readonly picture?: { readonly begin: number; readonly pixelNs: number };
  trace(): Promise<TraceInfo>;
  /** Rows of each track asked for; one without slices has an empty list. Each track once. */
  tiles(request: TileRequest, signal?: AbortSignal): Promise<Map<number, Row[]>>;
  /** By thread: the share of each pixel within calls; `of`: in that state. */
  minimap(width: number, of?: TimeOf): Promise<Uint8Array[]>;
  /** `raw`: times as recorded; who wants its place alone is answered sooner so. */
  call(at: CallRef, raw: boolean): Promise<CallInfo>;
  /** Of calls of one thread, MOST_VALUES at most; those without values are left out. */
  values(thread: number, indices: readonly number[], signal?: AbortSignal): Promise<Map<number, CallValues>>;
  occurrences(query: OccurrenceQuery, signal?: AbortSignal): Promise<Occurrences>;
  histogram(func: number, raw: boolean, signal?: AbortSignal): Promise<Histogram>;
  functions(scope: Scope, signal?: AbortSignal): Promise<FunctionTable>;
  /** Calls far slower than usual; one of each function. */
  outliers(scope: Scope, signal?: AbortSignal): Promise<SlowAnswer>;
  explain(at: CallRef, signal?: AbortSignal): Promise<Explanation>;
  /** What a kind of track is made of. */
  list<Of>(of: LateList<Of>, signal?: AbortSignal): Promise<Of>;
  /** The first or the last ones, and how many there are in all. */
  notes(scope: Scope, query: NoteQuery, signal?: AbortSignal): Promise<{ count: number; notes: NoteLine[] }>;
  /** For a picture of `width` pixels, by thread in order of time. Of too many the last threads' are left out. */
  noteMarks(scope: Scope, width: number, groups: readonly NoteGroup[], signal?: AbortSignal): Promise<NoteMark[]>;
  /** Of the scope's threads: those that last so long, or longer. */
  colours(scope: Scope, leastNs: number, signal?: AbortSignal): Promise<ColouredCalls>;
  /** Of some of the list of plots, by their places there. */
  plotParts(range: Scope, width: number, plots: readonly number[], signal?: AbortSignal): Promise<PlotPart[]>;
  /** What is known of one set of the list of frames, by its place there, and of one frame of it. `target` in ns. */
  frame(set: number, target: number, number?: number, signal?: AbortSignal): Promise<FrameFacts>;
  /** Who had the lock that a call waited for. */
  lock(at: CallRef): Promise<LockAnswer>;
  /** One who had a lock of the list of locks, and who waited. */
  holder(lock: number, holder: number): Promise<LockAnswer>;
  /** Which flows a call is a step of, of a trace that has flows. */
  flows(at: CallRef, signal?: AbortSignal): Promise<FlowAnswer>;
  /** What a call took, of a trace that has records of memory. */
  memory(at: CallRef, signal?: AbortSignal): Promise<CallMemory>;
  threads(scope: Scope): Promise<ThreadSums>;
  flame(scope: Scope, query: FlameQuery, signal?: AbortSignal): Promise<Flame>;
  /** What changed from this trace to trace `b`, as karst diff says it. */
  findings(b: number, raw: boolean, signal?: AbortSignal): Promise<FindingAnswer>;
  /** `a` is of this trace. */
  align(a: AlignSide, b: AlignSide, raw: boolean, signal?: AbortSignal): Promise<Alignment>;
  search(pattern: string): Promise<{ functions: number[]; calls: number }>;
  source(func: number): Promise<SourceText>;
  /** One state of a thread. */
  state(thread: number, index: number): Promise<StateLine>;
  /** What SQL answers. It, check() and schema() need a server that answers SQL (TraceInfo.answersSql). */
  sql(text: string, raw: boolean, signal: AbortSignal): Promise<SqlAnswer>;
  /** What the detectors of `karst check` find. */
  check(raw: boolean, signal: AbortSignal): Promise<CheckAnswer>;
  /** Tables that SQL can ask. */
  schema(signal: AbortSignal): Promise<SqlSchema>;
  /** The first of a thread's calls that began in that ns, as `karst explain --call` names it. */
  callAt(thread: number, begin: number): Promise<CallInfo>;
  /** Says which threads are looked at while the trace is being read. */
  readFirst?(threads: readonly number[]): void;
  /** Address of a .karst of just this range; undefined when there is no server to make it. */
  cutAddress(begin: number, end: number): string | undefined;
}
