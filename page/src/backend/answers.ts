// Rows of Karst's answers. Made of their declarations (answers/) by docs_test, which fails when they differ;
// KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file anew. Times are ns.
import { flag, maybe, num, place, text, type Columns } from "./rows";

/** A row for each call, thread by thread in order of begin. */
export interface Call {
  /** Thread id and begin, as karst explain --call takes them. */
  call: string;
  /** What was called: in TraceInfo.functions; -1: none. */
  function: number;
  /** After the trace's first event. */
  begin: number;
  /** With all it called; of an open call what is known of it. */
  duration: number;
  /** Which of its begin and its end is not known: begin, end, begin and end. */
  open: string;
  /** Of its thread: in TraceInfo.processes. */
  process: number;
  /** That it was made in: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** The traced call that it was made in: in TraceInfo.functions; -1: none. */
  caller: number;
  /** What it was given (karst run --args). */
  arguments: string;
  /** What it returned (karst run --returns). */
  returned: string;
}

export const calls: Columns<Call> = {
  call: ["call", text],
  function: ["function", place],
  begin: ["begin", num],
  duration: ["duration", num],
  open: ["open", text],
  process: ["process", place],
  thread: ["thread", place],
  caller: ["caller", place],
  arguments: ["arguments", text],
  returned: ["returned", text],
};

/** A row for each call to a file or socket, thread by thread in order of begin. */
export interface FileCall {
  /** After the trace's first event. */
  begin: number;
  /** How long it took. */
  duration: number;
  /** Whether its begin or its end is not known. */
  open: boolean;
  /** Which function of libc's was called. */
  call: string;
  /** Its path, or a socket's other end. */
  file: string;
  /** Its descriptor. */
  fd: number | null;
  /** What was read. */
  read: number;
  /** What was written. */
  written: number;
  /** What it returned, -1 of one that failed. */
  result: number | null;
  /** Why it failed, as EAGAIN; empty: it did not, or that is not known. */
  error: string;
  /** Of its thread: in TraceInfo.processes. */
  process: number;
  /** That made it: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** The traced function that made it: in TraceInfo.functions; -1: none. */
  function: number;
}

export const fileCalls: Columns<FileCall> = {
  begin: ["begin", num],
  duration: ["duration", num],
  open: ["open", flag],
  call: ["call", text],
  file: ["file", text],
  fd: ["fd", maybe(num)],
  read: ["read", num],
  written: ["written", num],
  result: ["result", maybe(num)],
  error: ["error", text],
  process: ["process", place],
  thread: ["thread", place],
  function: ["function", place],
};

/** A row for each function that used files. */
export interface FileUser {
  /** The traced function that called: in TraceInfo.functions; -1: none. */
  function: number;
  /** How many there were. */
  calls: number;
  /** How many of them failed. */
  errors: number;
  /** What they read. */
  read: number;
  /** What they wrote. */
  written: number;
  /** How long they took together. */
  total: number;
  /** How long the longest took. */
  longest: number;
  /** Which function of libc's took longest. */
  longestCall: string;
}

export const fileUsers: Columns<FileUser> = {
  function: ["function", place],
  calls: ["calls", num],
  errors: ["errors", num],
  read: ["read", num],
  written: ["written", num],
  total: ["total", num],
  longest: ["longest", num],
  longestCall: ["longest_call", text],
};

/** A row for each function that called, and what it called. */
export interface FileUse {
  /** Which function of libc's was called. */
  call: string;
  /** How many there were. */
  calls: number;
  /** How many of them failed. */
  errors: number;
  /** What they read. */
  read: number;
  /** What they wrote. */
  written: number;
  /** How long they took together. */
  total: number;
  /** How long the longest took. */
  longest: number;
  /** The traced function that called: in TraceInfo.functions; -1: none. */
  function: number;
}

export const fileUses: Columns<FileUse> = {
  call: ["call", text],
  calls: ["calls", num],
  errors: ["errors", num],
  read: ["read", num],
  written: ["written", num],
  total: ["total", num],
  longest: ["longest", num],
  function: ["function", place],
};

/** A row for each file, socket and pipe that was used. */
export interface File {
  /** Its path as the program gave it, or a socket's other end. */
  file: string;
  /** How many there were. */
  calls: number;
  /** How many of them failed. */
  errors: number;
  /** What they read. */
  read: number;
  /** What they wrote. */
  written: number;
  /** How long they took together. */
  total: number;
  /** How long the longest took. */
  longest: number;
  /** Which function of libc's took longest. */
  longestCall: string;
}

export const files: Columns<File> = {
  file: ["file", text],
  calls: ["calls", num],
  errors: ["errors", num],
  read: ["read", num],
  written: ["written", num],
  total: ["total", num],
  longest: ["longest", num],
  longestCall: ["longest_call", text],
};

/** A row for each file, and what was called. */
export interface FileOfUser {
  /** Which function of libc's was called. */
  call: string;
  /** How many there were. */
  calls: number;
  /** How many of them failed. */
  errors: number;
  /** What they read. */
  read: number;
  /** What they wrote. */
  written: number;
  /** How long they took together. */
  total: number;
  /** How long the longest took. */
  longest: number;
  /** Its path, or a socket's other end. */
  file: string;
}

export const filesOfUser: Columns<FileOfUser> = {
  call: ["call", text],
  calls: ["calls", num],
  errors: ["errors", num],
  read: ["read", num],
  written: ["written", num],
  total: ["total", num],
  longest: ["longest", num],
  file: ["file", text],
};

/** A row for each flow that the program told of with karst.h, and for each C++20 coroutine that was resumed. */
export interface Flow {
  /** Whose flow it is: in TraceInfo.processes. */
  process: number;
  /** As karst_flow(ID) says it; a coroutine's name, and where its frame was. */
  flow: string;
  /** Its number; of a coroutine where its frame was. */
  id: string;
  /** Whether it is one. */
  coroutine: boolean;
  /** After the trace's first event. */
  begin: number;
  /** From its first step to its last; '>': its end was not told. */
  duration: number;
  /** Whether its end was told. */
  ended: boolean;
  /** Calls that it went through; of a coroutine its resumptions. */
  stepCount: number;
  /** That it went through. */
  threads: number;
  /** Time from each step to the next, in all: of a coroutine, while it was suspended. */
  between: number;
  /** The longest of these times. */
  longest: number | null;
  /** The calls that the longest lies between, or the step of a coroutine that it is behind. */
  where: string;
}

export const flows: Columns<Flow> = {
  process: ["process", place],
  flow: ["flow", text],
  id: ["id", text],
  coroutine: ["coroutine", flag],
  begin: ["begin", num],
  duration: ["duration", num],
  ended: ["ended", flag],
  stepCount: ["step_count", num],
  threads: ["threads", num],
  between: ["between", num],
  longest: ["longest", maybe(num)],
  where: ["where", text],
};

/** A row for each step of a flow. */
export interface Step {
  /** Its number in the flow, from 1 on. */
  step: number;
  /** After the trace's first event. */
  begin: number;
  /** The time since the step before it. */
  after: number | null;
  /** How long a coroutine went on; what was said is of no length. */
  duration: number | null;
  /** The thread that it was in: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** The call that it was in: in TraceInfo.functions; -1: none. */
  call: number;
}

export const steps: Columns<Step> = {
  step: ["step", num],
  begin: ["begin", num],
  after: ["after", maybe(num)],
  duration: ["duration", maybe(num)],
  thread: ["thread", place],
  call: ["call", place],
};

/** A row for each function that took memory itself, by malloc, new and their like. */
export interface MemoryOfFunction {
  /** All that it took. */
  bytes: number;
  /** How far that may be off, where allocations were sampled (95%). */
  bytesMargin: number;
  /** How often it took some. */
  allocations: number;
  /** What of it was not freed at the end: of the program, of --range or of --call. */
  livingBytes: number;
  /** How far that may be off. */
  livingMargin: number;
  /** Allocations that were not freed. */
  living: number;
  /** What of it there was when most bytes were living at once. */
  peakBytes: number;
  /** Allocations that were freed by the thread as the next thing. */
  shortLived: number;
  /** Times that there was no memory. */
  failed: number;
  /** Bytes of mmap, brk and sbrk. */
  mappedBytes: number;
  /** What of those was not given back at the end. */
  livingMappedBytes: number;
  /** The innermost traced call that took it. */
  function: string;
}

export const memoryOfFunctions: Columns<MemoryOfFunction> = {
  bytes: ["bytes", num],
  bytesMargin: ["bytes_margin", num],
  allocations: ["allocations", num],
  livingBytes: ["living_bytes", num],
  livingMargin: ["living_margin", num],
  living: ["living", num],
  peakBytes: ["peak_bytes", num],
  shortLived: ["short_lived", num],
  failed: ["failed", num],
  mappedBytes: ["mapped_bytes", num],
  livingMappedBytes: ["living_mapped_bytes", num],
  function: ["function", text],
};

/** A row for each path that took memory itself, by malloc, new and their like. */
export interface MemoryOfPath {
  /** All that it took. */
  bytes: number;
  /** How far that may be off, where allocations were sampled (95%). */
  bytesMargin: number;
  /** How often it took some. */
  allocations: number;
  /** What of it was not freed at the end: of the program, of --range or of --call. */
  livingBytes: number;
  /** How far that may be off. */
  livingMargin: number;
  /** Allocations that were not freed. */
  living: number;
  /** What of it there was when most bytes were living at once. */
  peakBytes: number;
  /** Allocations that were freed by the thread as the next thing. */
  shortLived: number;
  /** Times that there was no memory. */
  failed: number;
  /** Bytes of mmap, brk and sbrk. */
  mappedBytes: number;
  /** What of those was not given back at the end. */
  livingMappedBytes: number;
  /** The calls that led there, the innermost first. */
  path: string;
}

export const memoryOfPaths: Columns<MemoryOfPath> = {
  bytes: ["bytes", num],
  bytesMargin: ["bytes_margin", num],
  allocations: ["allocations", num],
  livingBytes: ["living_bytes", num],
  livingMargin: ["living_margin", num],
  living: ["living", num],
  peakBytes: ["peak_bytes", num],
  shortLived: ["short_lived", num],
  failed: ["failed", num],
  mappedBytes: ["mapped_bytes", num],
  livingMappedBytes: ["living_mapped_bytes", num],
  path: ["path", text],
};

/** A row for each note of the program's own. */
export interface Note {
  /** After the trace's first event. */
  time: number;
  /** What it is: message, value, request and so on. */
  kind: string;
  /** As the program says it. */
  name: string;
  /** What it says. */
  value: string;
  /** Of the thread: in TraceInfo.processes. */
  process: number;
  /** Which said it: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** The call that it is in: in TraceInfo.functions; -1: none. */
  in: number;
  /** Of a log's line: debug, info, warning or error. */
  level: string;
  /** What tracing took, of a note of that. */
  duration: number | null;
}

export const notes: Columns<Note> = {
  time: ["time", num],
  kind: ["kind", text],
  name: ["name", text],
  value: ["value", text],
  process: ["process", place],
  thread: ["thread", place],
  in: ["in", place],
  level: ["level", text],
  duration: ["duration", maybe(num)],
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
