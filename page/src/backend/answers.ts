// Rows of Karst's answers. Made of their declarations (engine/api/relations.h) by docs_test, which fails when they differ;
// KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file anew. Times are ns.
import { flag, maybe, num, place, rowsIn, text, type Columns } from "./rows";

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

/** Calls that took far longer than their functions usually do. */
export interface SlowAnswer {
  /** Such calls in the threads that were asked about. */
  found: number;
  /** By thread, in the order of TraceInfo.threads. */
  excess: ThreadExcess[];
  /** The greatest excess first; those that slept as they were told to come last. */
  slow: SlowCall[];
  /** How many lines there are without a limit. */
  groups: number;
}

export const slowAnswers: Columns<SlowAnswer> = {
  found: ["found", num],
  excess: ["excess", rowsIn(() => threadExcesses)],
  slow: ["slow", rowsIn(() => slow)],
  groups: ["groups", num],
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
