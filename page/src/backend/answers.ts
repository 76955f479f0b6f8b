// Rows of Karst's answers. Made of their declarations (engine/api/relations.h) by docs_test, which fails when they differ;
// KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file anew. Times are ns.
import { flag, list, maybe, num, place, rowIn, rowsIn, text, type Columns } from "./rows";

/** A row for each value that was noted of a call. */
export interface NamedValue {
  /** What it is called. */
  name: string;
  /** What it was. */
  text: string;
}

export const notedValues: Columns<NamedValue> = {
  name: ["name", text],
  text: ["text", text],
};

/** What a call was given and what it returned. */
export interface CallValues {
  /** What it was given. */
  arguments: NamedValue[];
  /** What it returned; members of a structure have names. */
  returned: NamedValue[];
}

export const valuesOfCall: Columns<CallValues> = {
  arguments: ["arguments", rowsIn(() => notedValues)],
  returned: ["returned", rowsIn(() => notedValues)],
};

/** How durations spread. */
export interface Histogram {
  /** Whose calls they are of. */
  function: number;
  /** How many. */
  calls: number;
  /** Of them those with a begin or an end that is not known. */
  openCalls: number;
  /** The shortest of the complete calls. */
  min: number | null;
  /** Half of them took no longer. */
  p50: number | null;
  /** 99 of 100 took no longer. */
  p99: number | null;
  /** The longest of them. */
  max: number | null;
  /** Of the complete calls. */
  mean: number | null;
  /** Between which they are counted: one more than counts. */
  edges: number[];
  /** Complete calls between them. */
  counts: number[];
}

export const histograms: Columns<Histogram> = {
  function: ["function", num],
  calls: ["calls", num],
  openCalls: ["open_calls", num],
  min: ["min", maybe(num)],
  p50: ["p50", maybe(num)],
  p99: ["p99", maybe(num)],
  max: ["max", maybe(num)],
  mean: ["mean", maybe(num)],
  edges: ["edges", list(num)],
  counts: ["counts", list(num)],
};

/** A row for each frame. */
export interface FrameLine {
  /** From 1 on, where the history begins. */
  number: number;
  /** When it begins. */
  begin: number;
  /** How long it took. */
  duration: number;
  /** Whether both ends have a mark: nobody marked where the first frame begins. */
  marked: boolean;
}

export const frameLines: Columns<FrameLine> = {
  number: ["number", num],
  begin: ["begin", num],
  duration: ["duration", num],
  marked: ["marked", flag],
};

/** What a frame showed, compressed as BC1 has it. */
export interface FramePicture {
  /** In pixels. */
  width: number;
  /** In pixels. */
  height: number;
  /** Two for each 4 times 4 pixels, line by line; the first byte of each in the lowest bits. */
  words: number[];
}

export const framePictures: Columns<FramePicture> = {
  width: ["width", num],
  height: ["height", num],
  words: ["words", list(num)],
};

/** All frames of a name, and one of them. */
export interface FrameAnswer {
  /** That took longer than the target. */
  over: number;
  /** Of those that have marks at both ends. */
  durations: Histogram | null;
  /** The slowest of those. */
  slowest: FrameLine[];
  /** The one; null: none was asked about. */
  frame: FrameLine | null;
  /** The last one over the target before it. */
  previous: FrameLine | null;
  /** The first one over the target after it. */
  next: FrameLine | null;
  /** Of the one. */
  picture: FramePicture | null;
}

export const frameAnswers: Columns<FrameAnswer> = {
  over: ["over", num],
  durations: ["durations", rowIn(() => histograms)],
  slowest: ["slowest", rowsIn(() => frameLines)],
  frame: ["frame", rowIn(() => frameLines)],
  previous: ["previous", rowIn(() => frameLines)],
  next: ["next", rowIn(() => frameLines)],
  picture: ["picture", rowIn(() => framePictures)],
};

/** What threads did in a time. */
export interface StateTimes {
  /** They ran. */
  cpu: number;
  /** They had no CPU. */
  runnable: number;
  /** They waited. */
  blocked: number;
  /** It is not known. */
  unknown: number;
}

export const stateTimes: Columns<StateTimes> = {
  cpu: ["cpu", num],
  runnable: ["runnable", num],
  blocked: ["blocked", num],
  unknown: ["unknown", num],
};

/** A row for each function that was called. */
export interface FunctionRow {
  /** In TraceInfo.functions. */
  function: number;
  /** How many. */
  calls: number;
  /** Of them those with a begin or an end that is not known. */
  openCalls: number;
  /** Time with the function on the stack. */
  total: number;
  /** Time in the function itself. */
  self: number;
  /** The shortest of the complete calls. */
  min: number | null;
  /** Of the complete calls. */
  mean: number | null;
  /** Half of them took no longer. */
  p50: number | null;
  /** 99 of 100 took no longer. */
  p99: number | null;
  /** The longest of them. */
  max: number | null;
  /** Part of the total on a CPU. */
  cpu: number | null;
  /** Part of the total without a CPU. */
  runnable: number | null;
  /** Part of the total in which threads waited. */
  blocked: number | null;
  /** Part of the own time on a CPU. */
  selfCpu: number | null;
  /** Part of the own time without a CPU. */
  selfRunnable: number | null;
  /** Part of the own time in which threads waited. */
  selfBlocked: number | null;
}

export const functionRows: Columns<FunctionRow> = {
  function: ["function", num],
  calls: ["calls", num],
  openCalls: ["open_calls", num],
  total: ["total", num],
  self: ["self", num],
  min: ["min", maybe(num)],
  mean: ["mean", maybe(num)],
  p50: ["p50", maybe(num)],
  p99: ["p99", maybe(num)],
  max: ["max", maybe(num)],
  cpu: ["cpu", maybe(num)],
  runnable: ["runnable", maybe(num)],
  blocked: ["blocked", maybe(num)],
  selfCpu: ["self_cpu", maybe(num)],
  selfRunnable: ["self_runnable", maybe(num)],
  selfBlocked: ["self_blocked", maybe(num)],
};

/** Sums by function. */
export interface FunctionTable {
  /** That called. */
  threads: number;
  /** How many there are. */
  calls: number;
  /** Of them those with a begin or an end that is not known. */
  openCalls: number;
  /** Of all threads together. */
  busy: number;
  /** Of `busy`; null: the trace has no thread states. */
  states: StateTimes | null;
  /** By function. */
  rows: FunctionRow[];
}

export const functionTables: Columns<FunctionTable> = {
  threads: ["threads", num],
  calls: ["calls", num],
  openCalls: ["open_calls", num],
  busy: ["busy", num],
  states: ["states", rowIn(() => stateTimes)],
  rows: ["rows", rowsIn(() => functionRows)],
};

/** A row for each function that took memory itself, within a call. */
export interface Taker {
  /** How often memory was taken. */
  allocations: number;
  /** That were taken. */
  bytes: number;
  /** How far that may be off: 95 of 100 estimates are within. */
  bytesMargin: number;
  /** Allocations that were not freed by the end of the call. */
  left: number;
  /** Of those. */
  leftBytes: number;
  /** How far that may be off. */
  leftMargin: number;
  /** Recorded ones of which nobody knows whether they were freed. */
  unknown: number;
  /** In TraceInfo.functions. */
  function: number;
}

export const takers: Columns<Taker> = {
  allocations: ["allocations", num],
  bytes: ["bytes", num],
  bytesMargin: ["bytes_margin", num],
  left: ["left", num],
  leftBytes: ["left_bytes", num],
  leftMargin: ["left_margin", num],
  unknown: ["unknown", num],
  function: ["function", num],
};

/** What a call took of memory. */
export interface CallMemory {
  /** How often memory was taken. */
  allocations: number;
  /** That were taken. */
  bytes: number;
  /** How far that may be off: 95 of 100 estimates are within. */
  bytesMargin: number;
  /** Allocations that were not freed by the end of the call. */
  left: number;
  /** Of those. */
  leftBytes: number;
  /** How far that may be off. */
  leftMargin: number;
  /** Recorded ones of which nobody knows whether they were freed. */
  unknown: number;
  /** One allocation in so many bytes was recorded; 0: all. */
  sampled: number;
  /** Whether the trace has all of the call; what it has is counted. */
  whole: boolean;
  /** Those that took most. */
  functions: Taker[];
  /** That are left out. */
  moreFunctions: number;
}

export const callMemories: Columns<CallMemory> = {
  allocations: ["allocations", num],
  bytes: ["bytes", num],
  bytesMargin: ["bytes_margin", num],
  left: ["left", num],
  leftBytes: ["left_bytes", num],
  leftMargin: ["left_margin", num],
  unknown: ["unknown", num],
  sampled: ["sampled", num],
  whole: ["whole", flag],
  functions: ["functions", rowsIn(() => takers)],
  moreFunctions: ["more_functions", num],
};

/** A row for each request that the program told of with karst.h. */
export interface Request {
  /** Whose request it is: in TraceInfo.processes. */
  process: number;
  /** Its number, as the program says it. */
  request: string;
  /** After the trace's first event. */
  begin: number;
  /** From the note that it begins to the note that it ends; without them from the first work on it or to the last ('<', '>'). */
  duration: number;
  /** Whether there is a note of its begin. */
  begun: boolean;
  /** Whether there is a note of its end. */
  ended: boolean;
  /** Time in which no thread worked on it: it waited in a queue. */
  idle: number;
  /** Of all threads together, while they said karst_request(ID). */
  work: number;
  /** Part of the work on a CPU. */
  cpu: number | null;
  /** Part of the work in which a thread had no CPU. */
  runnable: number | null;
  /** Part of the work in which a thread waited. */
  blocked: number | null;
  /** Part of the work of which the state is not known. */
  unknown: number | null;
  /** That worked on it. */
  threads: number;
  /** That began in that time. */
  calls: number;
  /** The greatest self time that a function has in it. */
  most: number;
  /** The function with that time: in TraceInfo.functions; -1: none. */
  mostIn: number;
}

export const requests: Columns<Request> = {
  process: ["process", place],
  request: ["request", text],
  begin: ["begin", num],
  duration: ["duration", num],
  begun: ["begun", flag],
  ended: ["ended", flag],
  idle: ["idle", num],
  work: ["work", num],
  cpu: ["cpu", maybe(num)],
  runnable: ["runnable", maybe(num)],
  blocked: ["blocked", maybe(num)],
  unknown: ["unknown", maybe(num)],
  threads: ["threads", num],
  calls: ["calls", num],
  most: ["most", num],
  mostIn: ["most_in", place],
};

/** A row for each process that has requests in time. */
export interface RequestTrack {
  /** Id of its track. */
  track: number;
  /** Whose requests they are: in TraceInfo.processes. */
  process: number;
  /** Requests that it is of. */
  count: number;
  /** Lanes of requests, below each of them work_lanes of threads that worked on those. */
  atOnce: number;
  /** Below each lane of requests. */
  workLanes: number;
  /** Requests and stretches of work for which there was no lane. */
  leftOut: number;
}

export const requestTracks: Columns<RequestTrack> = {
  track: ["track", num],
  process: ["process", place],
  count: ["count", num],
  atOnce: ["at_once", num],
  workLanes: ["work_lanes", num],
  leftOut: ["left_out", num],
};

/** What the program told of its requests. */
export interface RequestAnswer {
  /** How many there are. */
  count: number;
  /** The longest ones, the longest first. */
  requests: Request[];
  /** A track for each process. */
  tracks: RequestTrack[];
}

export const requestAnswers: Columns<RequestAnswer> = {
  count: ["count", num],
  requests: ["requests", rowsIn(() => requests)],
  tracks: ["tracks", rowsIn(() => requestTracks)],
};

/** The time that an exported page holds. */
export interface RangeFact {
  /** When it begins. */
  begin: number;
  /** When it ends. */
  end: number;
}

export const rangeFacts: Columns<RangeFact> = {
  begin: ["begin", num],
  end: ["end", num],
};

/** How far a trace has been read. */
export interface ReadingFact {
  /** Whose calls are there. */
  threadsRead: number;
}

export const readingFacts: Columns<ReadingFact> = {
  threadsRead: ["threads_read", num],
};

/** How times were measured. */
export interface ClockFact {
  /** Its rate. */
  ticksPerSecond: number;
  /** Who says so: pairs, perf or cpuid. */
  rateSource: string;
  /** When the trace's first event was, since 1970. */
  startRealtimeNs: string | null;
  /** Of a tick. */
  resolutionNs: number;
}

export const clockFacts: Columns<ClockFact> = {
  ticksPerSecond: ["ticks_per_second", num],
  rateSource: ["rate_source", text],
  startRealtimeNs: ["start_realtime_ns", maybe(text)],
  resolutionNs: ["resolution_ns", num],
};

/** A row for each thing that could not be used. */
export interface Problem {
  /** What it is, and what it costs. */
  message: string;
  /** How often it was met. */
  count: number;
}

export const problems: Columns<Problem> = {
  message: ["message", text],
  count: ["count", num],
};

/** A row for each time that functions were switched off or on. */
export interface SwitchInfo {
  /** When it began. */
  begin: number;
  /** When it was done; null: it was under way when the trace was written. */
  end: number | null;
  /** Whether it is of all functions. */
  all: boolean;
  /** The number that the first one has in its process. */
  first: number;
  /** Successive numbers from that one on, some of them spare. */
  ids: number;
  /** Of which there is a function. */
  functions: number;
  /** Whether it was on. */
  on: boolean;
  /** Request, timer, budget or unknown. */
  reason: string;
  /** Some of them, in TraceInfo.functions. */
  named: number[];
}

export const switchInfos: Columns<SwitchInfo> = {
  begin: ["begin", num],
  end: ["end", maybe(num)],
  all: ["all", flag],
  first: ["first", num],
  ids: ["ids", num],
  functions: ["functions", num],
  on: ["on", flag],
  reason: ["reason", text],
  named: ["named", list(num)],
};

/** A row for each time that was asked to be kept: a slow call, what led to a trigger, a snapshot. */
export interface MomentInfo {
  /** What --kept calls it. */
  number: number;
  /** Why it was kept. */
  kind: string;
  /** When it began. */
  begin: number;
  /** When it ended. */
  end: number;
  /** From when on all was kept. */
  keptFrom: number;
  /** Until when. */
  keptTo: number;
  /** In TraceInfo.threads; -1: of all, or of one without a traced call. */
  thread: number;
  /** In words. */
  what: string;
  /** Records that were overwritten before they could be kept. */
  lostEvents: number;
  /** The call that it was, in its thread; null: none, or not in the trace. */
  index: number | null;
  /** Of that call, in TraceInfo.functions. */
  function: number | null;
}

export const momentInfos: Columns<MomentInfo> = {
  number: ["number", num],
  kind: ["kind", text],
  begin: ["begin", num],
  end: ["end", num],
  keptFrom: ["kept_from", num],
  keptTo: ["kept_to", num],
  thread: ["thread", num],
  what: ["what", text],
  lostEvents: ["lost_events", num],
  index: ["index", maybe(num)],
  function: ["function", maybe(num)],
};

/** A row for each process. */
export interface ProcessFact {
  /** Its number. */
  pid: number;
  /** That of its parent. */
  parentPid: number;
  /** What it is called. */
  name: string;
  /** Its arguments. */
  commandLine: string[];
  /** What it says of itself as a whole. */
  appInfo: string[];
  /** Its file. */
  executable: string;
  /** Of tracing. */
  options: string;
  /** When tracing began. */
  begin: number | null;
  /** When it ended. */
  end: number | null;
  /** As wait() has it. */
  waitStatus: number | null;
  /** What tracing a call costs; 0: not known. */
  callCost: number;
  /** Whether its end was seen. */
  ended: boolean;
  /** Whether its trace memory held what cannot be. */
  damaged: boolean;
  /** That gave way to newer ones. */
  overwrittenEvents: number;
  /** That were never recorded. */
  lostEvents: number;
  /** When functions were off, the first ones. */
  switches: SwitchInfo[];
  /** What was asked to be kept. */
  moments: MomentInfo[];
  /** How many switches there are. */
  switchCount: number;
}

export const processFacts: Columns<ProcessFact> = {
  pid: ["pid", num],
  parentPid: ["parent_pid", num],
  name: ["name", text],
  commandLine: ["command_line", list(text)],
  appInfo: ["app_info", list(text)],
  executable: ["executable", text],
  options: ["options", text],
  begin: ["begin", maybe(num)],
  end: ["end", maybe(num)],
  waitStatus: ["wait_status", maybe(num)],
  callCost: ["call_cost", num],
  ended: ["ended", flag],
  damaged: ["damaged", flag],
  overwrittenEvents: ["overwritten_events", num],
  lostEvents: ["lost_events", num],
  switches: ["switches", rowsIn(() => switchInfos)],
  moments: ["moments", rowsIn(() => momentInfos)],
  switchCount: ["switch_count", num],
};

/** A row for each time of which events are missing. */
export interface Gap {
  /** When it begins. */
  begin: number;
  /** When it ends. */
  end: number;
  /** Overwritten, or missing from the file. */
  kind: string;
  /** Of events. */
  blocks: number;
}

export const gaps: Columns<Gap> = {
  begin: ["begin", num],
  end: ["end", num],
  kind: ["kind", text],
  blocks: ["blocks", num],
};

/** How many notes a thread has of each group. */
export interface NoteCount {
  /** Of this group. */
  message: number;
  /** Of this group. */
  value: number;
  /** Of this group. */
  frame: number;
  /** Of this group. */
  request: number;
  /** Of this group. */
  text: number;
  /** Of this group. */
  record: number;
  /** Of this group. */
  picture: number;
  /** Of this group. */
  other: number;
  /** Of this group. */
  call: number;
  /** Of this group. */
  color: number;
}

export const noteCounts: Columns<NoteCount> = {
  message: ["message", num],
  value: ["value", num],
  frame: ["frame", num],
  request: ["request", num],
  text: ["text", num],
  record: ["record", num],
  picture: ["picture", num],
  other: ["other", num],
  call: ["call", num],
  color: ["color", num],
};

/** A row for each thread. */
export interface ThreadFact {
  /** Whose it is: in TraceInfo.processes. */
  process: number;
  /** Its number. */
  tid: number;
  /** Whether it is a fiber's lane, with a number that is none of the kernel's. */
  fiber: boolean;
  /** What it is called. */
  name: string;
  /** Of threads that the program put together. */
  group: string | null;
  /** When it joined. */
  begin: number | null;
  /** When it exited. */
  end: number | null;
  /** Its first event. */
  first: number | null;
  /** Its last event. */
  last: number | null;
  /** Whether its end was seen. */
  exited: boolean;
  /** How many it made. */
  calls: number;
  /** Levels that they have. */
  depths: number;
  /** That it recorded. */
  events: number;
  /** That gave way to newer ones. */
  overwrittenEvents: number;
  /** That were never recorded. */
  lostEvents: number;
  /** Events earlier than the one before them. */
  outOfOrder: number;
  /** Returns that fit no call. */
  unmatchedExits: number;
  /** Calls whose caller returned while they had not. */
  missingExits: number;
  /** Calls that no lane could take. */
  beyondDepth: number;
  /** Times of which events are missing, the first ones. */
  gaps: Gap[];
  /** How many there are. */
  gapCount: number;
  /** Whether it is known what it did beside its calls. */
  states: boolean;
  /** How many it has of each group. */
  notes: NoteCount | null;
  /** While the trace is being read: from when on its calls are not there yet. */
  unreadFrom: number | null;
}

export const threadFacts: Columns<ThreadFact> = {
  process: ["process", place],
  tid: ["tid", num],
  fiber: ["fiber", flag],
  name: ["name", text],
  group: ["group", maybe(text)],
  begin: ["begin", maybe(num)],
  end: ["end", maybe(num)],
  first: ["first", maybe(num)],
  last: ["last", maybe(num)],
  exited: ["exited", flag],
  calls: ["calls", num],
  depths: ["depths", num],
  events: ["events", num],
  overwrittenEvents: ["overwritten_events", num],
  lostEvents: ["lost_events", num],
  outOfOrder: ["out_of_order", num],
  unmatchedExits: ["unmatched_exits", num],
  missingExits: ["missing_exits", num],
  beyondDepth: ["beyond_depth", num],
  gaps: ["gaps", rowsIn(() => gaps)],
  gapCount: ["gap_count", num],
  states: ["states", flag],
  notes: ["notes", rowIn(() => noteCounts)],
  unreadFrom: ["unread_from", maybe(num)],
};

/** A row for each of what has lanes of its own in time: a thread, its states, a CPU. */
export interface TrackFact {
  /** What questions call it. */
  id: number;
  /** What it is of. */
  kind: string;
  /** What it is called. */
  name: string;
  /** In TraceInfo.threads, of a CPU in TraceInfo.cpus. */
  owner: number;
  /** How many it has. */
  lanes: number;
}

export const trackFacts: Columns<TrackFact> = {
  id: ["id", num],
  kind: ["kind", text],
  name: ["name", text],
  owner: ["owner", num],
  lanes: ["lanes", num],
};

/** Functions that occur: columns. */
export interface FunctionFact {
  /** Of all functions. */
  count: number;
  /** What calls name them by. */
  number: number[];
  /** What they are called. */
  name: string[];
  /** In `modules`; -1: not known. */
  module: number[];
  /** In `files`; -1: not known. */
  file: number[];
  /** Where they begin there. */
  line: number[];
  /** How many there are of them. */
  calls: number[];
  /** Numbers of zones that the program gave a colour. */
  colored: number[];
  /** Of those: 0xrrggbb. */
  colors: number[];
}

export const functionFacts: Columns<FunctionFact> = {
  count: ["count", num],
  number: ["number", list(num)],
  name: ["name", list(text)],
  module: ["module", list(num)],
  file: ["file", list(num)],
  line: ["line", list(num)],
  calls: ["calls", list(num)],
  colored: ["colored", list(num)],
  colors: ["colors", list(num)],
};

/** What is known of thread states, and from whom. */
export interface StatesInfo {
  /** Ftrace or perf. */
  backend: string;
  /** Whether it says who woke whom. */
  wakes: boolean;
  /** Whether it says what else ran. */
  others: boolean;
  /** Whether it says in which system call a thread waited. */
  syscalls: boolean;
  /** How far times may be off from the calls'. */
  clockErrorNs: number;
  /** That the kernel left out. */
  lostEvents: number;
  /** From when on they are known. */
  begin: number;
  /** Until when. */
  end: number;
  /** What would be needed for more. */
  note: string;
}

export const statesInfos: Columns<StatesInfo> = {
  backend: ["backend", text],
  wakes: ["wakes", flag],
  others: ["others", flag],
  syscalls: ["syscalls", flag],
  clockErrorNs: ["clock_error_ns", num],
  lostEvents: ["lost_events", num],
  begin: ["begin", num],
  end: ["end", num],
  note: ["note", text],
};

/** A row for each thread as the kernel knows it, of the run or not. */
export interface TaskInfo {
  /** Its number. */
  tid: number;
  /** That of its process; 0: not known. */
  pid: number;
  /** What it is called. */
  name: string;
  /** Whether it is of a process of the run. */
  ofRun: boolean;
  /** In TraceInfo.threads; -1: none. */
  thread: number;
}

export const taskInfos: Columns<TaskInfo> = {
  tid: ["tid", num],
  pid: ["pid", num],
  name: ["name", text],
  ofRun: ["of_run", flag],
  thread: ["thread", num],
};

/** A row for each time in which it is not known what ran on a CPU. */
export interface CpuGap {
  /** When it begins. */
  begin: number;
  /** When it ends. */
  end: number;
  /** Records that the kernel left out. */
  lost: number;
}

export const cpuGaps: Columns<CpuGap> = {
  begin: ["begin", num],
  end: ["end", num],
  lost: ["lost", num],
};

/** A row for each CPU on which threads ran. */
export interface CpuInfo {
  /** Its number. */
  cpu: number;
  /** When it is not known what ran there, the first ones. */
  gaps: CpuGap[];
}

export const cpuInfos: Columns<CpuInfo> = {
  cpu: ["cpu", num],
  gaps: ["gaps", rowsIn(() => cpuGaps)],
};

/** A row for each function that samples saw. */
export interface SampledCodeFact {
  /** What it is called. */
  name: string;
  /** That its code is in. */
  module: string;
  /** Its source. */
  file: string;
  /** Where it begins there. */
  line: number;
}

export const sampledCode: Columns<SampledCodeFact> = {
  name: ["name", text],
  module: ["module", text],
  file: ["file", text],
  line: ["line", num],
};

/** How code was sampled (`karst run --sample`). */
export interface SampledInfo {
  /** CPU time that a sample stands for. */
  period: number;
  /** How many there are. */
  samples: number;
  /** That the kernel left out. */
  lost: number;
  /** That they saw. */
  functions: SampledCodeFact[];
  /** Whether time in the kernel is among them. */
  kernel: boolean;
}

export const sampledInfos: Columns<SampledInfo> = {
  period: ["period", num],
  samples: ["samples", num],
  lost: ["lost", num],
  functions: ["functions", rowsIn(() => sampledCode)],
  kernel: ["kernel", flag],
};

/** What is small and does not change. */
export interface TraceFact {
  /** Of karst. */
  version: string;
  /** Of the file. */
  name: string;
  /** Of the file as it was given. */
  path: string;
  /** Of the file. */
  fileSize: number;
  /** Whether it has names of functions. */
  resolved: boolean;
  /** Whether it has its end. */
  complete: boolean;
  /** Whether the server stays when the page goes. */
  keep: boolean;
  /** That may be asked about. */
  traces: number;
  /** To its last event. */
  span: number;
  /** To the end of its last call; those that run at the end last until their thread's. */
  extent: number;
  /** The part of it that an exported page holds. */
  range: RangeFact | null;
  /** How many it has. */
  calls: number;
  /** How many it has. */
  events: number;
  /** How far it has been read, while it is: most questions have to wait. */
  reading: ReadingFact | null;
  /** How times were measured. */
  clock: ClockFact | null;
  /** What could not be used. */
  problems: Problem[];
  /** Its processes. */
  processes: ProcessFact[];
  /** Its threads. */
  threads: ThreadFact[];
  /** What has lanes of its own in time. */
  tracks: TrackFact[];
  /** Functions that occur. */
  functions: FunctionFact | null;
  /** Paths. */
  modules: string[];
  /** Paths. */
  files: string[];
  /** Whether the trace has the text of each of `files`. */
  hasSource: boolean[];
  /** Functions whose values are noted. */
  values: number[];
  /** Functions that are waits for locks. */
  lockWaits: number[];
  /** Whether it has records of memory. */
  memory: boolean;
  /** Whether its calls lead to one another. */
  flows: boolean;
  /** Who told when threads ran and waited. */
  states: StatesInfo | null;
  /** Threads as the kernel knows them, of the run or not. */
  tasks: TaskInfo[];
  /** On which threads ran, once the trace is read. */
  cpus: CpuInfo[];
  /** How code was sampled, if it was. */
  sampled: SampledInfo | null;
  /** What the server can do: cut. */
  features: string[];
}

export const traceFacts: Columns<TraceFact> = {
  version: ["version", text],
  name: ["name", text],
  path: ["path", text],
  fileSize: ["file_size", num],
  resolved: ["resolved", flag],
  complete: ["complete", flag],
  keep: ["keep", flag],
  traces: ["traces", num],
  span: ["span", num],
  extent: ["extent", num],
  range: ["range", rowIn(() => rangeFacts)],
  calls: ["calls", num],
  events: ["events", num],
  reading: ["reading", rowIn(() => readingFacts)],
  clock: ["clock", rowIn(() => clockFacts)],
  problems: ["problems", rowsIn(() => problems)],
  processes: ["processes", rowsIn(() => processFacts)],
  threads: ["threads", rowsIn(() => threadFacts)],
  tracks: ["tracks", rowsIn(() => trackFacts)],
  functions: ["functions", rowIn(() => functionFacts)],
  modules: ["modules", list(text)],
  files: ["files", list(text)],
  hasSource: ["has_source", list(flag)],
  values: ["values", list(num)],
  lockWaits: ["lock_waits", list(num)],
  memory: ["memory", flag],
  flows: ["flows", flag],
  states: ["states", rowIn(() => statesInfos)],
  tasks: ["tasks", rowsIn(() => taskInfos)],
  cpus: ["cpus", rowsIn(() => cpuInfos)],
  sampled: ["sampled", rowIn(() => sampledInfos)],
  features: ["features", list(text)],
};

/** A row for each call of which something was noted. */
export interface ValuedCall {
  /** What it was given. */
  arguments: NamedValue[];
  /** What it returned; members of a structure have names. */
  returned: NamedValue[];
  /** Its place in its thread. */
  index: number;
}

export const valuedCalls: Columns<ValuedCall> = {
  arguments: ["arguments", rowsIn(() => notedValues)],
  returned: ["returned", rowsIn(() => notedValues)],
  index: ["index", num],
};

/** Values of calls. */
export interface ValueAnswer {
  /** Those of which something is noted. */
  calls: ValuedCall[];
}

export const valueAnswers: Columns<ValueAnswer> = {
  calls: ["calls", rowsIn(() => valuedCalls)],
};
