// What docs/viewer-protocol.md says, as types. questions.ts asks; transport.ts says who answers.

export { kCut, kInherited, kJumped, kOpenBegin, kOpenEnd, kResumed, kSummed, kTailCall, kUnwound } from "./protocol";

export interface Gap {
  begin: number;
  end: number;
  kind: "overwritten" | "missing";
  blocks: number;
}

export interface ThreadInfo {
  index: number; // in TraceInfo.threads
  process: number;
  tid: number;
  /** Its number is none of the kernel's: it is a fiber's lane. */
  fiber: boolean;
  name: string;
  begin: number;
  end: number;
  first: number;
  last: number;
  exited: boolean;
  calls: number;
  maxDepth: number;
  overwrittenEvents: number;
  lostEvents: number;
  missingExits: number;
  gaps: Gap[];
  /** Whether it is known what the thread did beside its calls. */
  states: boolean;
  /** How many notes it has of each group; those that it has none of are left out. */
  notes: Readonly<Partial<Record<NoteGroup, number>>>;
  /** While the trace is being read: from when on its calls are not there yet. */
  unreadFrom?: number;
}

/** Kinds of notes that the page tells apart; "other": of a later version. */
export const NOTE_GROUPS = ["message", "value", "frame", "request", "text", "other"] as const;
export type NoteGroup = (typeof NOTE_GROUPS)[number];

/** Functions were switched off or on. */
export interface SwitchInfo {
  begin: number;
  end: number | null; // under way when the trace was written
  all: boolean;
  /** Functions have numbers in their process; these have `ids` successive ones from `first` on, some of them spare. */
  first: number;
  ids: number;
  functions: number;
  on: boolean;
  reason: string;
  /** Some of them, in TraceInfo.functions. */
  named: number[];
}

/** What was asked to be kept: a slow call, what led to a trigger, a snapshot. */
export interface MomentInfo {
  number: number;
  kind: string;
  begin: number;
  end: number;
  thread: number; // -1: of all
  what: string;
  /** The call that it was, in its thread; left out: it was none, or is not in the trace. */
  index?: number;
  function?: number;
  /** Records that were overwritten before they could be kept. */
  lostEvents: number;
}

export interface ProcessInfo {
  index: number;
  pid: number;
  name: string;
  commandLine: string[];
  executable: string;
  options: string;
  waitStatus: number | null;
  /** What tracing a call costs, ns; 0: not known. */
  callCost: number;
  damaged: boolean;
  overwrittenEvents: number;
  lostEvents: number;
  switches: SwitchInfo[];
  /** Of which `switches` are the first. */
  switchCount: number;
  moments: MomentInfo[];
}

export interface FunctionInfo {
  name: string;
  module: string;
  file: string;
  line: number;
  calls: number;
  hasSource: boolean;
}

/** What is known of thread states, and from whom. */
export interface StatesInfo {
  backend: string;
  wakes: boolean;
  others: boolean;
  syscalls: boolean;
  clockErrorNs: number;
  lostEvents: number;
  note: string;
}

/** A thread as the kernel knows it, of the run or not. */
export interface TaskInfo {
  tid: number;
  pid: number;
  name: string;
  ofRun: boolean;
  thread: number; // in TraceInfo.threads; -1: none
}

export interface CpuInfo {
  cpu: number;
  gaps: { begin: number; end: number; lost: number }[];
}

/** What has lanes of its own in time: a thread, its states, a CPU. */
export interface TrackInfo {
  id: number;
  kind: string;
  name: string;
  /** Place in TraceInfo.threads, of a CPU in TraceInfo.cpus. */
  owner: number;
  lanes: number;
}

/** Lanes of a thread's states, and of a CPU. */
export const STRIP_DEPTHS = ["running", "runnable", "blocked", "unknown"] as const;
export const CPU_THREAD = 0;
export const CPU_FUNCTION = 1;

export interface StateTimes {
  cpu: number;
  runnable: number;
  blocked: number;
  unknown: number;
}

export interface StateLine {
  index: number;
  begin: number;
  duration: number;
  /** The wait for a CPU that follows a blocking. */
  runnable: number;
  state: string;
  words: string;
  /** Blocked: the system call in which; empty: not known. */
  where: string;
  /** Who ended it, "4711 worker"; empty: not known. */
  who: string;
  /** The call that ended the wait. */
  by?: { thread: number; index: number; function: number; depth: number };
}

export interface TraceInfo {
  version: string;
  name: string;
  path: string;
  fileSize: number;
  complete: boolean;
  traces: number;
  span: number;
  /** When the last call ends: those that are running at the end last until their thread's. At least `span`. */
  extent: number;
  calls: number;
  resolutionNs: number;
  startRealtimeNs: string | null;
  problems: { message: string; count: number }[];
  processes: ProcessInfo[];
  threads: ThreadInfo[];
  tracks: TrackInfo[];
  /** By their numbers, with holes for those that do not occur. */
  functions: FunctionInfo[];
  /** Numbers of those whose values are noted. */
  valued: ReadonlySet<number>;
  canCut: boolean;
  states: StatesInfo | null;
  tasks: TaskInfo[];
  cpus: CpuInfo[];
  /** It is still being read: most questions have to wait. */
  reading?: true;
  /** An exported page: the range it holds. */
  range?: { begin: number; end: number };
  /** An exported page that holds one picture and sums instead of each call. */
  aggregated?: boolean;
}

/** Calls whose values are asked for at once, at most. */
export const MOST_VALUES = 500;

/** A part of a trace: a range of time in some threads (all when left out), or what happened within one call. */
export interface Scope {
  begin?: number;
  end?: number;
  threads?: readonly number[];
  thread?: number;
  index?: number;
  function?: number;
}

/** The slices of one lane of one track within a tile; columns of equal length, sorted by begin. */
export interface Row {
  depth: number;
  begin: Float64Array;
  duration: Float64Array;
  func: Uint32Array;
  index: Uint32Array;
  count: Uint32Array;
  flags: Uint8Array;
  density: Uint8Array;
}

export interface CallRef {
  thread: number;
  index: number;
}

/** A value as C++ writes it. What a call returns has no name, but the members of a structure have theirs. */
export interface NamedValue {
  name: string;
  text: string;
}

/** What a call was given, and what it returned, as far as it is noted. */
export interface CallValues {
  arguments: readonly NamedValue[];
  returned: readonly NamedValue[];
}

export interface CallLine {
  index: number;
  function: number;
  begin: number;
  duration: number;
  flags: number;
}

export interface CallInfo extends CallLine {
  thread: number;
  self: number;
  /** Of the duration: what tracing took, by an estimate, ns; 0: not known. */
  cost: number;
  depth: number;
  parents: CallLine[];
  moreParents: number;
  children: {
    count: number;
    functions: { function: number; calls: number; total: number; longest: number }[];
    moreFunctions: number;
    longest: CallLine[];
  };
  subtreeCalls: number;
  values?: CallValues;
  states?: StateTimes;
  selfStates?: StateTimes;
  waits: StateLine[];
}

/** A call that took far longer than its function usually does. */
export interface Outlier extends CallLine {
  thread: number;
  depth: number;
  /** What its function usually takes, ns. */
  usual: number;
  /** Such calls of its function, this one included, and how long all of them took. */
  calls: number;
  total: number;
  /** From its callee down to where most of the time went. */
  path: { index: number; function: number; duration: number }[];
  states?: StateTimes;
  wait?: StateLine;
}

/** A difference between a call and the usual ones, and how much of its excess it is. */
export interface Cause {
  kind: string;
  /** Names of functions, from the call's callee down; empty: the call itself. */
  path: string[];
  /** The same as numbers of TraceInfo.functions; -1: it has none. */
  functions: number[];
  place: string;
  what: string;
  excess: number;
  share: number;
  /** Who was waited for meanwhile, in words. */
  chain: string[];
  /** What calls on its path were given or returned that is not usual, in words. */
  values: string[];
  waited?: StateLine;
  /** Of the path the longest call, or the one that waited; left out: the explained call has none. */
  at?: CallLine & { depth: number };
}

/** Why a call took longer than others of its function. Times without the tracer's own. */
export interface Explanation {
  thread: number;
  index: number;
  headline: string;
  duration: number;
  usual: number;
  siblings: number;
  typical: number;
  first: boolean;
  standsOut: boolean;
  excess: number;
  /** What the call was given or returned that is not usual, in words. */
  values: string[];
  causes: Cause[];
  rest: number;
  restShare: number;
  /** What a call costs with the tracer, ns; 0: not known. */
  callCost: number;
}

export interface Outliers {
  found: number;
  /** By thread: the greatest time beyond the usual, ns. */
  excess: number[];
  /** The greatest excess first. */
  slow: Outlier[];
}

/** What all threads did for a request. Work and most time without the tracer's own. */
export interface RequestLine {
  /** Its number, rounded where it has more than 53 bits; `id` is exact. */
  request: number;
  id: string;
  pid: number;
  begin: number;
  duration: number;
  begun: boolean;
  ended: boolean;
  idle: number;
  work: number;
  /** Null when the trace has no thread states. */
  cpu: number | null;
  runnable: number | null;
  blocked: number | null;
  threads: number;
  calls: number;
  /** The function with the greatest self time; empty: there is none. */
  mostIn: string;
  mostTime: number;
  function: number; // in TraceInfo.functions; -1: none
}

/** What a program said of itself. */
export interface NoteLine {
  time: number;
  thread: number; // in TraceInfo.threads
  kind: string;
  group: NoteGroup;
  /** All of it in one line, with whatever characters the program's text has. */
  line: string;
  /** The call in which it was said; left out: the thread was in none. */
  index?: number;
  function?: number;
}

/** The notes of a thread that share a pixel: how many, and the first of them. */
export interface NoteMark extends NoteLine {
  count: number;
  /** The time of the last one. */
  last: number;
}

/** Values of one name, of all threads of a process. */
export interface PlotInfo {
  process: number;
  name: string;
  count: number;
  min: number;
  max: number;
}

/** How they go in a picture: columns, by pixel that has some. */
export interface PlotPart {
  plot: number;
  /** When the picture begins; null: there was none yet. */
  before: number | null;
  at: number[];
  count: number[];
  min: number[];
  max: number[];
  last: number[];
}

export interface NoteQuery {
  /** A part of what they say; empty: whatever. */
  text: string;
  /** Left out: all. */
  groups?: readonly NoteGroup[];
  newest: boolean;
  limit: number;
}

/** Of each thread, by its place in TraceInfo.threads. */
export interface ThreadSums {
  /** Levels that its calls have in the range. */
  depths: number[];
  cpu: number[];
  runnable: number[];
  blocked: number[];
}

export interface Occurrences {
  function: number;
  count: number;
  rank: number;
  calls: (CallLine & { thread: number })[];
}

export interface Histogram {
  function: number;
  calls: number;
  openCalls: number;
  min: number | null;
  p50: number | null;
  p99: number | null;
  max: number | null;
  mean: number | null;
  edges: number[];
  counts: number[];
}

export interface FunctionRow {
  function: number;
  calls: number;
  openCalls: number;
  total: number;
  self: number;
  min: number | null;
  mean: number | null;
  p50: number | null;
  p99: number | null;
  max: number | null;
  /** Null when the trace has no thread states. */
  cpu: number | null;
  runnable: number | null;
  blocked: number | null;
  selfCpu: number | null;
  selfRunnable: number | null;
  selfBlocked: number | null;
}

export interface FunctionTable {
  calls: number;
  openCalls: number;
  busy: number;
  /** Of `busy`. */
  states?: StateTimes;
  rows: FunctionRow[];
}

export interface Flame {
  total: number;
  calls: number;
  truncated: boolean;
  parent: Int32Array;
  func: Int32Array; // -1 root, -2 merged
  totals: Float64Array;
  selfs: Float64Array;
  counts: Float64Array;
  merged: Float64Array;
  /** When two sets of calls are compared. */
  b?: { total: number; totals: Float64Array; selfs: Float64Array; counts: Float64Array };
  extraFunctions: string[];
}

/** Two flows, call by call: columns by side, then by node; parents come before their children. */
export interface Alignment {
  parent: Int32Array;
  func: Int32Array; // -1: all of a thread
  index: [Int32Array, Int32Array]; // -1: no row
  has: [Uint8Array, Uint8Array];
  begin: [Float64Array, Float64Array]; // since the root's begin
  duration: [Float64Array, Float64Array];
  extraFunctions: string[];
  truncated: boolean;
}

/** A call, or all of a thread. */
export interface AlignSide {
  trace: number;
  thread: number;
  index?: number;
}

export interface SourceText {
  path: string;
  line: number;
  endLine: number;
  firstLine: number;
  text: string;
}

export interface Progress {
  phase: "opening" | "rebuilding" | "ready" | "failed";
  done: number;
  total: number;
  /** Grows whenever there is more to be seen. */
  parts: number;
  error: string;
  files: string[];
}

/** Lanes of one track, both ends included. */
export interface Levels {
  track: number;
  from: number;
  to: number;
}

export interface TileRequest {
  begin: number;
  end: number;
  width: number;
  levels: readonly Levels[];
  /** Only calls of this function. */
  function?: number;
}

export interface OccurrenceQuery {
  function: number;
  order: "time" | "duration";
  direction: "next" | "previous";
  at?: CallRef;
  limit?: number;
  /** Only calls that last from `least` to `most` ns. */
  least?: number;
  most?: number;
}

/** What a flame graph adds up, and a minimap shows. */
export type TimeOf = "cpu" | "runnable" | "blocked";

export interface FlameQuery {
  inverted?: boolean;
  path?: readonly number[];
  /** Left out: all time. */
  by?: TimeOf;
  /** A second set of calls to compare with. */
  b?: Scope & { trace?: number };
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
  call(at: CallRef): Promise<CallInfo>;
  /** Of calls of one thread, MOST_VALUES at most; those without values are left out. */
  values(thread: number, indices: readonly number[], signal?: AbortSignal): Promise<Map<number, CallValues>>;
  occurrences(query: OccurrenceQuery, signal?: AbortSignal): Promise<Occurrences>;
  histogram(func: number, signal?: AbortSignal): Promise<Histogram>;
  functions(scope: Scope, signal?: AbortSignal): Promise<FunctionTable>;
  /** Calls far slower than usual; one of each function. */
  outliers(scope: Scope, signal?: AbortSignal): Promise<Outliers>;
  explain(at: CallRef, signal?: AbortSignal): Promise<Explanation>;
  /** The longest requests, the longest first. */
  requests(signal?: AbortSignal): Promise<{ count: number; requests: RequestLine[] }>;
  /** The first or the last ones, and how many there are in all. */
  notes(scope: Scope, query: NoteQuery, signal?: AbortSignal): Promise<{ count: number; notes: NoteLine[] }>;
  /** For a picture of `width` pixels, by thread in order of time. Of too many the last threads' are left out. */
  noteMarks(scope: Scope, width: number, groups: readonly NoteGroup[], signal?: AbortSignal): Promise<NoteMark[]>;
  plots(signal?: AbortSignal): Promise<PlotInfo[]>;
  /** Of some of plots(), by their places there. */
  plotParts(range: Scope, width: number, plots: readonly number[], signal?: AbortSignal): Promise<PlotPart[]>;
  threads(scope: Scope): Promise<ThreadSums>;
  flame(scope: Scope, query: FlameQuery, signal?: AbortSignal): Promise<Flame>;
  /** `a` is of this trace. */
  align(a: AlignSide, b: AlignSide, signal?: AbortSignal): Promise<Alignment>;
  search(pattern: string): Promise<{ functions: number[]; calls: number }>;
  source(func: number): Promise<SourceText>;
  /** One state of a thread. */
  state(thread: number, index: number): Promise<StateLine>;
  /** Says which threads are looked at while the trace is being read. */
  readFirst?(threads: readonly number[]): void;
  /** Address of a .karst of just this range; undefined when there is no server to make it. */
  cutAddress(begin: number, end: number): string | undefined;
}
