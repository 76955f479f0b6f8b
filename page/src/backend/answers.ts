// Rows of Karst's answers. Made of their declarations (engine/api/relations.h) by docs_test, which fails when they differ;
// KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file anew. Times are ns.
import { flag, list, maybe, num, place, rowIn, rowsIn, text, type Columns } from "./rows";

/** A row for each call. */
export interface CallLine {
  /** Its place in its thread. */
  index: number;
  /** In TraceInfo.functions. */
  function: number;
  /** When it was called. */
  begin: number;
  /** How long it took, as recorded. */
  duration: number;
  /** Of the call. */
  flags: number;
  /** Its level. */
  depth: number;
}

export const callLines: Columns<CallLine> = {
  index: ["index", num],
  function: ["function", num],
  begin: ["begin", num],
  duration: ["duration", num],
  flags: ["flags", num],
  depth: ["depth", num],
};

/** A row for each function that a call called directly. */
export interface Callee {
  /** In TraceInfo.functions. */
  function: number;
  /** How often. */
  calls: number;
  /** Of these calls together. */
  total: number;
  /** The longest of them, by its place in its thread. */
  longest: number;
}

export const callees: Columns<Callee> = {
  function: ["function", num],
  calls: ["calls", num],
  total: ["total", num],
  longest: ["longest", num],
};

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

/** A row for each call that ended a wait. */
export interface Waker {
  /** That it is in: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** Its place there. */
  index: number;
  /** In TraceInfo.functions. */
  function: number;
  /** Its level. */
  depth: number;
}

export const wakers: Columns<Waker> = {
  thread: ["thread", place],
  index: ["index", num],
  function: ["function", num],
  depth: ["depth", num],
};

/** A row for each thread that had the CPU while another one waited for it, the longest first. */
export interface CpuShare {
  /** Its id and name, also of threads of other programs. */
  name: string;
  /** How long it had it. */
  duration: number;
  /** Of the trace: in TraceInfo.threads; -1: not known. */
  thread: number | null;
  /** That it was in for most of its longest stretch: in TraceInfo.functions; -1: none. */
  function: number | null;
}

export const cpuShares: Columns<CpuShare> = {
  name: ["name", text],
  duration: ["duration", num],
  thread: ["thread", maybe(place)],
  function: ["function", maybe(place)],
};

/** A row for each state of a thread. */
export interface StateLine {
  /** Its place among the thread's states. */
  index: number;
  /** When it begins. */
  begin: number;
  /** How long it is. */
  duration: number;
  /** The wait for a CPU that follows a blocking. */
  runnable: number;
  /** Running, blocked, preempted, woken, unknown or gone. */
  state: string;
  /** Where it ran last. */
  cpu: number;
  /** The system call that it waited in; empty: not known. */
  where: string;
  /** Who ended it, `4711 worker`; empty: not known. */
  by: string;
  /** The call that ended it; null: none, or not known. */
  waker: Waker | null;
  /** All that in words. */
  words: string;
  /** Who had the CPU that it waited for. */
  keptOffBy: CpuShare[];
  /** In which nobody knows who had it. */
  keptOffNotKnown: number | null;
}

export const stateLines: Columns<StateLine> = {
  index: ["index", num],
  begin: ["begin", num],
  duration: ["duration", num],
  runnable: ["runnable", num],
  state: ["state", text],
  cpu: ["cpu", num],
  where: ["where", text],
  by: ["by", text],
  waker: ["waker", rowIn(() => wakers)],
  words: ["words", text],
  keptOffBy: ["kept_off_by", rowsIn(() => cpuShares)],
  keptOffNotKnown: ["kept_off_not_known", maybe(num)],
};

/** A call from near. */
export interface CallInfo {
  /** Its place in its thread. */
  index: number;
  /** In TraceInfo.functions. */
  function: number;
  /** When it was called. */
  begin: number;
  /** How long it took, as recorded. */
  duration: number;
  /** Of the call. */
  flags: number;
  /** Its level. */
  depth: number;
  /** In TraceInfo.threads. */
  thread: number;
  /** Without what tracing took, unless times as recorded were asked for. */
  took: number;
  /** Of that what none of its children took. */
  self: number;
  /** Who called it, the outermost first. */
  parents: CallLine[];
  /** Further out. */
  moreParents: number;
  /** Calls that it made itself. */
  children: number;
  /** Functions of these, by falling total, the first ones. */
  callees: Callee[];
  /** Functions that are left out. */
  moreCallees: number;
  /** The longest of these calls, as recorded. */
  longestChildren: CallLine[];
  /** Calls within it. */
  subtreeCalls: number;
  /** What it was given. */
  arguments: NamedValue[];
  /** What it returned; members of a structure have names. */
  returned: NamedValue[];
  /** Of the call; null: not known. */
  states: StateTimes | null;
  /** Of the call without what it called. */
  selfStates: StateTimes | null;
  /** The longest that begin in the call. */
  waits: StateLine[];
}

export const callInfos: Columns<CallInfo> = {
  index: ["index", num],
  function: ["function", num],
  begin: ["begin", num],
  duration: ["duration", num],
  flags: ["flags", num],
  depth: ["depth", num],
  thread: ["thread", num],
  took: ["took", num],
  self: ["self", num],
  parents: ["parents", rowsIn(() => callLines)],
  moreParents: ["more_parents", num],
  children: ["children", num],
  callees: ["callees", rowsIn(() => callees)],
  moreCallees: ["more_callees", num],
  longestChildren: ["longest_children", rowsIn(() => callLines)],
  subtreeCalls: ["subtree_calls", num],
  arguments: ["arguments", rowsIn(() => notedValues)],
  returned: ["returned", rowsIn(() => notedValues)],
  states: ["states", rowIn(() => stateTimes)],
  selfStates: ["self_states", rowIn(() => stateTimes)],
  waits: ["waits", rowsIn(() => stateLines)],
};

/** A row for each noted value that no typical call has. */
export interface ValueHint {
  /** Of whose call it is: in TraceInfo.functions; -1: none. */
  function: number;
  /** Of the argument; `returned`: what the call returned. */
  name: string;
  /** What it is; of several calls that of the longest. */
  here: string;
  /** How many calls these are. */
  calls: number;
  /** Values in typical calls. */
  typical: number;
  /** Of these. */
  commonest: string;
  /** That they are this one. */
  times: number;
  /** The least of them, of numbers. */
  least: string | null;
  /** Their median. */
  median: string | null;
  /** The greatest of them. */
  most: string | null;
  /** All that in words. */
  words: string;
}

export const valueHints: Columns<ValueHint> = {
  function: ["function", place],
  name: ["name", text],
  here: ["here", text],
  calls: ["calls", num],
  typical: ["typical", num],
  commonest: ["commonest", text],
  times: ["times", num],
  least: ["least", maybe(text)],
  median: ["median", maybe(text)],
  most: ["most", maybe(text)],
  words: ["words", text],
};

/** A row for each call of a path, the outermost first. */
export interface PathCall {
  /** That was called: in TraceInfo.functions; -1: none. */
  function: number;
}

export const pathCalls: Columns<PathCall> = {
  function: ["function", place],
};

/** A row for each thread that was waited for: who ended the wait, who ended that one's own, and so on. */
export interface ChainLink {
  /** Who was waited for: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** The calls that it was in for most of that time. */
  path: PathCall[];
  /** When it began to wait. */
  waitBegin: number | null;
  /** How long it waited, for a CPU, too. */
  wait: number | null;
  /** Who had the CPU that it waited for. */
  keptOffBy: CpuShare[];
  /** The part of that in which nobody knows who had it. */
  keptOffNotKnown: number | null;
  /** How many more had it. */
  keptOffOthers: number | null;
  /** How long these had it. */
  keptOffMore: number | null;
  /** What it waited for, and who ended that. */
  waitWords: string | null;
  /** What it did meanwhile. */
  words: string;
}

export const chainLinks: Columns<ChainLink> = {
  thread: ["thread", place],
  path: ["path", rowsIn(() => pathCalls)],
  waitBegin: ["wait_begin", maybe(num)],
  wait: ["wait", maybe(num)],
  keptOffBy: ["kept_off_by", rowsIn(() => cpuShares)],
  keptOffNotKnown: ["kept_off_not_known", maybe(num)],
  keptOffOthers: ["kept_off_others", maybe(num)],
  keptOffMore: ["kept_off_more", maybe(num)],
  waitWords: ["wait_words", maybe(text)],
  words: ["words", text],
};

/** A row for each difference between the call and typical ones, by its share of the excess. */
export interface Cause {
  /** Own time, computing, blocked, without a CPU, not known, more calls, fewer calls, new, missing. */
  kind: string;
  /** From the call's callee down; nothing: the call itself. */
  path: PathCall[];
  /** How much of the excess it is; below 0: the call was faster there. */
  excess: number;
  /** The same as a part of the excess. */
  share: number;
  /** Of the path, in the call. */
  calls: number;
  /** In a typical call. */
  usualCalls: number;
  /** Page faults, where they are recorded. */
  pageFaults: number | null;
  /** In a typical call. */
  usualPageFaults: number | null;
  /** When it began to wait. */
  waitBegin: number | null;
  /** How long it waited, for a CPU, too. */
  wait: number | null;
  /** Who had the CPU that it waited for. */
  keptOffBy: CpuShare[];
  /** The part of that in which nobody knows who had it. */
  keptOffNotKnown: number | null;
  /** How many more had it. */
  keptOffOthers: number | null;
  /** How long these had it. */
  keptOffMore: number | null;
  /** What it waited for, and who ended that. */
  waitWords: string | null;
  /** Who was waited for. */
  chain: ChainLink[];
  /** What calls on its path were given or returned that is not usual. */
  values: ValueHint[];
  /** The path in words. */
  place: string;
  /** What was different there. */
  what: string;
  /** Who ended the wait, if it was in a call then: in TraceInfo.threads; -1: not known. */
  waker: number | null;
  /** The call that it was in, by its place in its thread. */
  wakerCall: number | null;
  /** The longest call along the path, or the one that waited, by its place in the thread. */
  at: number | null;
  /** What that calls: in TraceInfo.functions; -1: none. */
  atFunction: number | null;
  /** When it begins. */
  atBegin: number | null;
  /** How long it is as recorded. */
  atDuration: number | null;
  /** Its level. */
  atDepth: number | null;
}

export const causes: Columns<Cause> = {
  kind: ["kind", text],
  path: ["path", rowsIn(() => pathCalls)],
  excess: ["excess", num],
  share: ["share", num],
  calls: ["calls", num],
  usualCalls: ["usual_calls", num],
  pageFaults: ["page_faults", maybe(num)],
  usualPageFaults: ["usual_page_faults", maybe(num)],
  waitBegin: ["wait_begin", maybe(num)],
  wait: ["wait", maybe(num)],
  keptOffBy: ["kept_off_by", rowsIn(() => cpuShares)],
  keptOffNotKnown: ["kept_off_not_known", maybe(num)],
  keptOffOthers: ["kept_off_others", maybe(num)],
  keptOffMore: ["kept_off_more", maybe(num)],
  waitWords: ["wait_words", maybe(text)],
  chain: ["chain", rowsIn(() => chainLinks)],
  values: ["values", rowsIn(() => valueHints)],
  place: ["place", text],
  what: ["what", text],
  waker: ["waker", maybe(place)],
  wakerCall: ["waker_call", maybe(num)],
  at: ["at", maybe(num)],
  atFunction: ["at_function", maybe(place)],
  atBegin: ["at_begin", maybe(num)],
  atDuration: ["at_duration", maybe(num)],
  atDepth: ["at_depth", maybe(num)],
};

/** Why a call took longer than others of its function. */
export interface Explanation {
  /** Its thread and begin, as --call takes them. */
  call: string;
  /** What was called: in TraceInfo.functions; -1: none. */
  function: number;
  /** Of its thread: in TraceInfo.processes. */
  process: number;
  /** That it was made in: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** After the trace's first event. */
  begin: number;
  /** How long it took. */
  duration: number;
  /** Of a call that was left by a tail call into code that is not traced: the longest that it can have lasted. */
  most: number | null;
  /** Other complete calls of its function. */
  siblings: number;
  /** Those of them that it is compared with. */
  typical: number;
  /** The median of the siblings. */
  usual: number;
  /** Whether it is the first of them. */
  first: boolean;
  /** Whether it took longer than siblings differ among each other. */
  standsOut: boolean;
  /** How much longer than usual it took. */
  excess: number;
  /** What it is compared with, in words. */
  comparison: string | null;
  /** What it was given or returned that is not usual. */
  values: ValueHint[];
  /** The excess that no cause has. */
  rest: number;
  /** The same as a part of the excess. */
  restShare: number;
  /** The answer in one sentence. */
  headline: string;
  /** What was different, the greatest share first. */
  causes: Cause[];
  /** What a call costs with the tracer; 0: not known, or not taken out. */
  callCost: number;
  /** How far a call's time may be off for it; 0: not known. */
  callCostOffBy: number;
  /** The call's place in its thread. */
  index: number;
}

export const explanations: Columns<Explanation> = {
  call: ["call", text],
  function: ["function", place],
  process: ["process", place],
  thread: ["thread", place],
  begin: ["begin", num],
  duration: ["duration", num],
  most: ["most", maybe(num)],
  siblings: ["siblings", num],
  typical: ["typical", num],
  usual: ["usual", num],
  first: ["first", flag],
  standsOut: ["stands_out", flag],
  excess: ["excess", num],
  comparison: ["comparison", maybe(text)],
  values: ["values", rowsIn(() => valueHints)],
  rest: ["rest", num],
  restShare: ["rest_share", num],
  headline: ["headline", text],
  causes: ["causes", rowsIn(() => causes)],
  callCost: ["call_cost", num],
  callCostOffBy: ["call_cost_off_by", num],
  index: ["index", num],
};

/** A row for each thing that explains a difference between A and B, what is certain first. */
export interface Finding {
  /** Count: of calls; time: of a call. */
  kind: string;
  /** Of a count: the function that called; nothing: no traced one. */
  caller: string;
  /** That was called. */
  function: string;
  /** Whether it is. */
  certain: boolean;
  /** How sure it is. */
  sure: string;
  /** Of a run: by the caller; of a time, all. */
  callsA: number;
  /** Of a run: by the caller; of a time, all. */
  callsB: number;
  /** Of a time: self time of a call. */
  callSelfA: number;
  /** Of a time: self time of a call. */
  callSelfB: number;
  /** What a run of B takes more for it. */
  more: number;
  /** All that in a sentence. */
  words: string;
}

export const findings: Columns<Finding> = {
  kind: ["kind", text],
  caller: ["caller", text],
  function: ["function", text],
  certain: ["certain", flag],
  sure: ["sure", text],
  callsA: ["calls_a", num],
  callsB: ["calls_b", num],
  callSelfA: ["call_self_a", num],
  callSelfB: ["call_self_b", num],
  more: ["more", num],
  words: ["words", text],
};

/** What changed from one trace to another. */
export interface FindingAnswer {
  /** How long all took, in words. */
  all: string;
  /** What is worth a line. */
  findings: Finding[];
  /** Certain ones beyond these. */
  leftOut: number;
}

export const findingAnswers: Columns<FindingAnswer> = {
  all: ["all", text],
  findings: ["findings", rowsIn(() => findings)],
  leftOut: ["left_out", num],
};

/** A row for the step before or after a call's own. */
export interface StepBeside {
  /** That it was in: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** Of a coroutine's resumption; when it was said. */
  begin: number;
  /** Of what was said the same. */
  end: number;
  /** The time between the two. */
  gap: number;
  /** Its call, by its place in its thread; null: it was in none. */
  index: number | null;
  /** The call's level. */
  depth: number | null;
  /** What it calls: in TraceInfo.functions; -1: none. */
  function: number;
}

export const stepsBeside: Columns<StepBeside> = {
  thread: ["thread", place],
  begin: ["begin", num],
  end: ["end", num],
  gap: ["gap", num],
  index: ["index", maybe(num)],
  depth: ["depth", maybe(num)],
  function: ["function", place],
};

/** A row for each flow that a call is a step of. */
export interface CallFlow {
  /** `flow 17`, or a coroutine's name and where its frame lay. */
  name: string;
  /** Whether its steps are a coroutine's resumptions. */
  coroutine: boolean;
  /** Which one the call is, from 1 on. */
  step: number;
  /** Of how many. */
  steps: number;
  /** Whether its end was told. */
  ended: boolean;
  /** The step before it, if there is one. */
  before: StepBeside[];
  /** The step after it, if there is one. */
  after: StepBeside[];
  /** Of this step. */
  begin: number;
  /** Of this step. */
  end: number;
}

export const callFlows: Columns<CallFlow> = {
  name: ["name", text],
  coroutine: ["coroutine", flag],
  step: ["step", num],
  steps: ["steps", num],
  ended: ["ended", flag],
  before: ["before", rowsIn(() => stepsBeside)],
  after: ["after", rowsIn(() => stepsBeside)],
  begin: ["begin", num],
  end: ["end", num],
};

/** Flows that a call is a step of. */
export interface FlowAnswer {
  /** The first ones. */
  flows: CallFlow[];
  /** Of all. */
  count: number;
}

export const flowAnswers: Columns<FlowAnswer> = {
  flows: ["flows", rowsIn(() => callFlows)],
  count: ["count", num],
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

/** A row for each time that a thread waited for the lock. */
export interface WaitForLock {
  /** That waited: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** After the trace's first event. */
  begin: number;
  /** How long it waited; of an open wait what is known of it. */
  duration: number;
  /** Whether its begin or its end is not known. */
  open: boolean;
  /** The wait's place in its thread. */
  index: number;
  /** Its level there. */
  depth: number;
  /** Of the lock's track; null: there was no room for it. */
  lane: number | null;
}

export const waitsForLock: Columns<WaitForLock> = {
  thread: ["thread", place],
  begin: ["begin", num],
  duration: ["duration", num],
  open: ["open", flag],
  index: ["index", num],
  depth: ["depth", num],
  lane: ["lane", maybe(num)],
};

/** A row for each time that a thread had the lock. */
export interface LockHolder {
  /** Among the lock's holders. */
  place: number;
  /** When it took it, or a wait says that it had it. */
  begin: number;
  /** How long it had it, or until anybody began or ended a wait. */
  duration: number;
  /** Whether it is a hold; else a wait says so, and nobody says until when. */
  exact: boolean;
  /** What kind of lock it is. */
  kind: string | null;
  /** How the hold ended. */
  ended: string | null;
  /** Of the lock's track; null: there was no room for it. */
  lane: number | null;
}

export const lockHolders: Columns<LockHolder> = {
  place: ["place", num],
  begin: ["begin", num],
  duration: ["duration", num],
  exact: ["exact", flag],
  kind: ["kind", maybe(text)],
  ended: ["ended", maybe(text)],
  lane: ["lane", maybe(num)],
};

/** A row for each thread that has a lock, and what it did then. */
export interface LockOwner {
  /** Its id. */
  tid: number;
  /** That has it: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** Whether the trace has what it did then. */
  callKnown: boolean;
  /** That it was in; null: in none that is traced, or it is not known. */
  call: CallLine | null;
  /** How many threads had it then. */
  owners: number;
  /** Among the lock's holders; null: it is not there. */
  place: number | null;
}

export const lockOwners: Columns<LockOwner> = {
  tid: ["tid", num],
  thread: ["thread", place],
  callKnown: ["call_known", flag],
  call: ["call", rowIn(() => callLines)],
  owners: ["owners", num],
  place: ["place", maybe(num)],
};

/** A wait and who had the lock as it began; or who had a lock for a while, and who waited meanwhile. */
export interface LockAnswer {
  /** Place among the locks that have a track. */
  lock: number;
  /** The one that was asked about. */
  wait: WaitForLock | null;
  /** What was asked about. */
  held: LockHolder | null;
  /** Who had it; null: not known. */
  owner: LockOwner | null;
  /** The first of them, while it was held. */
  waiters: WaitForLock[];
  /** Of all of them. */
  waiterCount: number;
}

export const lockAnswers: Columns<LockAnswer> = {
  lock: ["lock", num],
  wait: ["wait", rowIn(() => waitsForLock)],
  held: ["held", rowIn(() => lockHolders)],
  owner: ["owner", rowIn(() => lockOwners)],
  waiters: ["waiters", rowsIn(() => waitsForLock)],
  waiterCount: ["waiter_count", num],
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

/** A row for each call of a function that was looked for. */
export interface FoundCall {
  /** Its place in its thread. */
  index: number;
  /** In TraceInfo.functions. */
  function: number;
  /** When it was called. */
  begin: number;
  /** How long it took, as recorded. */
  duration: number;
  /** Of the call. */
  flags: number;
  /** Its level. */
  depth: number;
  /** In TraceInfo.threads. */
  thread: number;
  /** Without what tracing took, unless times as recorded were asked for. */
  took: number;
}

export const foundCalls: Columns<FoundCall> = {
  index: ["index", num],
  function: ["function", num],
  begin: ["begin", num],
  duration: ["duration", num],
  flags: ["flags", num],
  depth: ["depth", num],
  thread: ["thread", num],
  took: ["took", num],
};

/** Calls of a function next to one of them. */
export interface Occurrences {
  /** In TraceInfo.functions. */
  function: number;
  /** Of its calls in all. */
  count: number;
  /** Of the one that was asked about, from 1 on; 0: it is none of them. */
  rank: number;
  /** The next ones, in the order that was asked for. */
  calls: FoundCall[];
}

export const occurrenceAnswers: Columns<Occurrences> = {
  function: ["function", num],
  count: ["count", num],
  rank: ["rank", num],
  calls: ["calls", rowsIn(() => foundCalls)],
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

/** A row for each thread. */
export interface ThreadExcess {
  /** That it is: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** The greatest time beyond the usual that a call took there. */
  excess: number;
}

export const threadExcesses: Columns<ThreadExcess> = {
  thread: ["thread", place],
  excess: ["excess", num],
};

/** A row for each call on the way down to where a slow call's time went. */
export interface SlowStep {
  /** With all it called. */
  duration: number;
  /** What it was given (karst run --args). */
  arguments: string | null;
  /** What it returned (karst run --returns). */
  returned: string | null;
  /** What was called: in TraceInfo.functions; -1: none. */
  function: number;
}

export const slowSteps: Columns<SlowStep> = {
  duration: ["duration", num],
  arguments: ["arguments", maybe(text)],
  returned: ["returned", maybe(text)],
  function: ["function", place],
};

/** A row for each function, and each callee that its time went to, whose calls took far longer than usual: the slowest such call. */
export interface SlowCall {
  /** After the trace's first event. */
  begin: number;
  /** With all it called. */
  duration: number;
  /** Of its thread: in TraceInfo.processes. */
  process: number;
  /** That it was made in: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** What the function's calls usually take. */
  usual: number;
  /** Such calls, this one included. */
  suchCalls: number;
  /** How long these took together. */
  such: number;
  /** What it was given (karst run --args). */
  arguments: string | null;
  /** What it returned (karst run --returns). */
  returned: string | null;
  /** From its callee down to where most of the time went. */
  path: SlowStep[];
  /** When it began to wait. */
  waitBegin: number | null;
  /** How long it waited, for a CPU, too. */
  wait: number | null;
  /** Who had the CPU that it waited for. */
  keptOffBy: CpuShare[];
  /** The part of that in which nobody knows who had it. */
  keptOffNotKnown: number | null;
  /** How many more had it. */
  keptOffOthers: number | null;
  /** How long these had it. */
  keptOffMore: number | null;
  /** What it waited for, and who ended that. */
  waitWords: string | null;
  /** Who was waited for (--follow). */
  chain: ChainLink[];
  /** What was called: in TraceInfo.functions; -1: none. */
  function: number;
  /** The part of it on a CPU. */
  cpu: number | null;
  /** Who ended the wait: in TraceInfo.threads; -1: not known. */
  waker: number | null;
  /** How long it is as recorded. */
  recorded: number;
  /** Its level. */
  depth: number;
  /** Its place in its thread. */
  index: number;
}

export const slow: Columns<SlowCall> = {
  begin: ["begin", num],
  duration: ["duration", num],
  process: ["process", place],
  thread: ["thread", place],
  usual: ["usual", num],
  suchCalls: ["such_calls", num],
  such: ["such", num],
  arguments: ["arguments", maybe(text)],
  returned: ["returned", maybe(text)],
  path: ["path", rowsIn(() => slowSteps)],
  waitBegin: ["wait_begin", maybe(num)],
  wait: ["wait", maybe(num)],
  keptOffBy: ["kept_off_by", rowsIn(() => cpuShares)],
  keptOffNotKnown: ["kept_off_not_known", maybe(num)],
  keptOffOthers: ["kept_off_others", maybe(num)],
  keptOffMore: ["kept_off_more", maybe(num)],
  waitWords: ["wait_words", maybe(text)],
  chain: ["chain", rowsIn(() => chainLinks)],
  function: ["function", place],
  cpu: ["cpu", maybe(num)],
  waker: ["waker", maybe(place)],
  recorded: ["recorded", num],
  depth: ["depth", num],
  index: ["index", num],
};

/** A row for each function that was left by a tail call into code that is not traced, and may have lasted far longer than usual there: its longest call. */
export interface LeftCall {
  /** After the trace's first event. */
  begin: number;
  /** The longest that it can have lasted: until its thread's next event. */
  most: number;
  /** What it had done before the jump, and such calls usually last behind it at most. */
  usual: number;
  /** Of the function that were left so. */
  calls: number;
  /** Of its thread: in TraceInfo.processes. */
  process: number;
  /** That it was made in: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** When it began to wait. */
  waitBegin: number | null;
  /** How long it waited, for a CPU, too. */
  wait: number | null;
  /** Who had the CPU that it waited for. */
  keptOffBy: CpuShare[];
  /** The part of that in which nobody knows who had it. */
  keptOffNotKnown: number | null;
  /** How many more had it. */
  keptOffOthers: number | null;
  /** How long these had it. */
  keptOffMore: number | null;
  /** What it waited for, and who ended that. */
  waitWords: string | null;
  /** What was called: in TraceInfo.functions; -1: none. */
  function: number;
  /** How long it is as recorded, until the jump. */
  recorded: number;
  /** Its level. */
  depth: number;
  /** Its place in its thread. */
  index: number;
}

export const left: Columns<LeftCall> = {
  begin: ["begin", num],
  most: ["most", num],
  usual: ["usual", num],
  calls: ["calls", num],
  process: ["process", place],
  thread: ["thread", place],
  waitBegin: ["wait_begin", maybe(num)],
  wait: ["wait", maybe(num)],
  keptOffBy: ["kept_off_by", rowsIn(() => cpuShares)],
  keptOffNotKnown: ["kept_off_not_known", maybe(num)],
  keptOffOthers: ["kept_off_others", maybe(num)],
  keptOffMore: ["kept_off_more", maybe(num)],
  waitWords: ["wait_words", maybe(text)],
  function: ["function", place],
  recorded: ["recorded", num],
  depth: ["depth", num],
  index: ["index", num],
};

/** Calls that took far longer than their functions usually do. */
export interface SlowAnswer {
  /** Such calls in the threads that were asked about. */
  found: number;
  /** By thread, in the order of TraceInfo.threads. */
  excess: ThreadExcess[];
  /** The greatest excess first; those that slept as they were told to come last. */
  slow: SlowCall[];
  /** Calls that were left by a tail call, and may have lasted long. */
  left: LeftCall[];
  /** How many lines there are without a limit. */
  groups: number;
}

export const slowAnswers: Columns<SlowAnswer> = {
  found: ["found", num],
  excess: ["excess", rowsIn(() => threadExcesses)],
  slow: ["slow", rowsIn(() => slow)],
  left: ["left", rowsIn(() => left)],
  groups: ["groups", num],
};

/** The file that a function is in, or the part of a long one around it. */
export interface SourceText {
  /** The file. */
  path: string;
  /** Where the function is, from 1. */
  line: number;
  /** Of its closing brace; its first line where that was not found. */
  endLine: number;
  /** Of the text. */
  firstLine: number;
  /** Its lines. */
  text: string;
}

export const sourceTexts: Columns<SourceText> = {
  path: ["path", text],
  line: ["line", num],
  endLine: ["end_line", num],
  firstLine: ["first_line", num],
  text: ["text", text],
};

/** How many levels each thread has in a range, and what it did there; by threads, as in TraceInfo.threads. */
export interface ThreadSums {
  /** Levels that its calls have in the range. */
  depths: number[];
  /** It ran. */
  cpu: number[];
  /** It had no CPU. */
  runnable: number[];
  /** It waited. */
  blocked: number[];
}

export const threadSums: Columns<ThreadSums> = {
  depths: ["depths", list(num)],
  cpu: ["cpu", list(num)],
  runnable: ["runnable", list(num)],
  blocked: ["blocked", list(num)],
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
  /** Whether it has none as its recording goes on, or was ended by force. */
  growing: boolean;
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
  /** Whether it tells what processes and the machine used. */
  usage: boolean;
  /** What the server can do: cut, query. */
  features: string[];
}

export const traceFacts: Columns<TraceFact> = {
  version: ["version", text],
  name: ["name", text],
  path: ["path", text],
  fileSize: ["file_size", num],
  resolved: ["resolved", flag],
  complete: ["complete", flag],
  growing: ["growing", flag],
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
  usage: ["usage", flag],
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

/** A row for each lock that has a track. */
export interface LockTrack {
  /** Id of its track. */
  track: number;
  /** That it is in: in TraceInfo.processes. */
  process: number;
  /** What kind of lock it is: mutex, rwlock, spinlock, condition, semaphore, barrier. */
  kind: string;
  /** What the program called it by karst_name_lock(). */
  name: string;
  /** Its address. */
  lock: string;
  /** Times that a thread waited for it. */
  waits: number;
  /** Of these waits together. */
  total: number;
  /** The longest of them. */
  longest: number;
  /** The first lanes, of those who had it. */
  holderLanes: number;
  /** All of them; the others are of those who waited. */
  lanes: number;
  /** Holders and waits for which there was no lane. */
  leftOut: number;
}

export const lockTracks: Columns<LockTrack> = {
  track: ["track", num],
  process: ["process", place],
  kind: ["kind", text],
  name: ["name", text],
  lock: ["lock", text],
  waits: ["waits", num],
  total: ["total", num],
  longest: ["longest", num],
  holderLanes: ["holder_lanes", num],
  lanes: ["lanes", num],
  leftOut: ["left_out", num],
};

/** Locks that have a track. */
export interface LockList {
  /** Whether each hold is known; else only waits say who had a lock. */
  holdsKnown: boolean;
  /** Locks without a track. */
  moreLocks: number;
  /** Waits for those. */
  moreWaits: number;
  /** Waits that do not say for which lock. */
  unnamedWaits: number;
  /** The one waited for longest first. */
  locks: LockTrack[];
}

export const lockLists: Columns<LockList> = {
  holdsKnown: ["holds_known", flag],
  moreLocks: ["more_locks", num],
  moreWaits: ["more_waits", num],
  unnamedWaits: ["unnamed_waits", num],
  locks: ["locks", rowsIn(() => lockTracks)],
};

/** A row for each name of frames in a process. */
export interface FrameSet {
  /** Id of its track. */
  track: number;
  /** That marks them: in TraceInfo.processes. */
  process: number;
  /** What they are called. */
  name: string;
  /** How many there are. */
  count: number;
}

export const frameSets: Columns<FrameSet> = {
  track: ["track", num],
  process: ["process", place],
  name: ["name", text],
  count: ["count", num],
};

/** Names of frames that have a track. */
export interface FrameList {
  /** Names without a track. */
  more: number;
  /** The main ones first. */
  frames: FrameSet[];
}

export const frameLists: Columns<FrameList> = {
  more: ["more", num],
  frames: ["frames", rowsIn(() => frameSets)],
};

/** A row for each thing that a detector found. */
export interface CheckFinding {
  /** The file. */
  trace: string;
  /** Which detector found it. */
  detector: string;
  /** When it began, or its worst case, after the trace's first event. */
  begin: number;
  /** How long that lasted. */
  duration: number;
  /** The thread it was in. */
  tid: number | null;
  /** Its name. */
  thread: string | null;
  /** The call to look at first, as karst explain --call takes it. */
  call: string | null;
  /** How much of it there is, in its unit. */
  amount: number;
  /** Ns, bytes, or what is counted. */
  unit: string;
  /** Time that it takes in all, of all threads together. */
  total: number;
  /** How likely it is more than chance, as the detector reckons. */
  sure: number;
  /** What it is, with its numbers. */
  sentence: string;
  /** What it is, in short. */
  title: string;
}

export const checkFindings: Columns<CheckFinding> = {
  trace: ["trace", text],
  detector: ["detector", text],
  begin: ["begin_ns", num],
  duration: ["duration_ns", num],
  tid: ["tid", maybe(num)],
  thread: ["thread", maybe(text)],
  call: ["call", maybe(text)],
  amount: ["amount", num],
  unit: ["unit", text],
  total: ["total_ns", num],
  sure: ["sure", num],
  sentence: ["sentence", text],
  title: ["title", text],
};

/** A row for each detector and trace. */
export interface Outcome {
  /** The file. */
  trace: string;
  /** Its name. */
  detector: string;
  /** Found, nothing, not looked for, or failed. */
  outcome: string;
  /** How many it found. */
  findings: number;
  /** It was not looked for, or failed; else empty. */
  why: string;
}

export const checkOutcomes: Columns<Outcome> = {
  trace: ["trace", text],
  detector: ["detector", text],
  outcome: ["outcome", text],
  findings: ["findings", num],
  why: ["why", text],
};
