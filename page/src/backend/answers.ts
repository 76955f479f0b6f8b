// Rows of Karst's answers. Made of their declarations (answers/) by docs_test, which fails when they differ;
// KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file anew. Times are ns.
import { flag, maybe, num, place, text, type Columns } from "./rows";

/** A row for each step of durations, a quarter of an octave. */
export interface Bucket {
  /** Calls that took so long. */
  from: number;
  /** Or longer, but not so long. */
  to: number;
  /** How many they are. */
  calls: number;
}

export const buckets: Columns<Bucket> = {
  from: ["from", num],
  to: ["to", num],
  calls: ["calls", num],
};

/** A row for each time that a lock went from waiter to waiter, three times in a row or more. */
export interface Convoy {
  /** When the first of them began to wait. */
  begin: number;
  /** Until the last of them released it. */
  duration: number;
  /** How many had it. */
  holds: number;
}

export const convoys: Columns<Convoy> = {
  begin: ["begin", num],
  duration: ["duration", num],
  holds: ["holds", num],
};

/** A row for each two functions of which one called the other. */
export interface Edge {
  /** How many. */
  calls: number;
  /** Within the called function; a call within another one adds nothing. */
  total: number;
  /** The same without the traced functions that it called. */
  self: number;
  /** The function that called; nothing: no traced one. */
  caller: string | null;
  /** That was called. */
  function: string;
}

export const edges: Columns<Edge> = {
  calls: ["calls", num],
  total: ["total", num],
  self: ["self", num],
  caller: ["caller", maybe(text)],
  function: ["function", text],
};

/** A row for each function that was called. */
export interface Function {
  /** Its part of all time in traced functions. */
  selfShare: number;
  /** The same of its total. */
  totalShare: number;
  /** The same as total without the traced functions it called. */
  self: number;
  /** Time with the function on the stack; recursion counts once. */
  total: number;
  /** How many, with those whose begin or end is not known. */
  calls: number;
  /** The shortest of the complete calls. */
  min: number | null;
  /** Of the complete calls. */
  mean: number | null;
  /** Half of them took no longer; percentiles are exact. */
  p50: number | null;
  /** 99 of 100 took no longer. */
  p99: number | null;
  /** The longest; sorted by it, what lasts as long as its thread comes last, like main. */
  max: number | null;
  /** What recording its calls took. */
  tracing: number;
  /** The part of total on a CPU (with thread states: karst run --sched). */
  cpu: number | null;
  /** The part of total in which it could run, but had no CPU. */
  runnable: number | null;
  /** The part of total in which it waited: for a lock, a disk, another thread. */
  blocked: number | null;
  /** The part of total of which that was not recorded. */
  unknown: number | null;
  /** The part of self on a CPU. */
  selfCpu: number | null;
  /** The part of self in which it could run, but had no CPU. */
  selfRunnable: number | null;
  /** The part of self in which it waited. */
  selfBlocked: number | null;
  /** The part of self of which that was not recorded. */
  selfUnknown: number | null;
  /** Of its calls those with a begin or an end that is not known. */
  openCalls: number;
  /** Of its calls those that an exception ended. */
  unwoundCalls: number;
  /** Of its calls those that a longjmp ended. */
  jumpedCalls: number;
  /** Of its calls those that ended with a tail call. */
  tailCalls: number;
  /** What tracing took of total, which is without it; --raw leaves it in. */
  totalCost: number;
  /** The same of self. */
  selfCost: number;
  /** The file that it is in. */
  module: string;
  /** Its source, where that is known. */
  file: string;
  /** Where it begins there. */
  line: number;
  /** Its name. */
  function: string;
}

export const functions: Columns<Function> = {
  selfShare: ["self_share", num],
  totalShare: ["total_share", num],
  self: ["self", num],
  total: ["total", num],
  calls: ["calls", num],
  min: ["min", maybe(num)],
  mean: ["mean", maybe(num)],
  p50: ["p50", maybe(num)],
  p99: ["p99", maybe(num)],
  max: ["max", maybe(num)],
  tracing: ["tracing", num],
  cpu: ["cpu", maybe(num)],
  runnable: ["runnable", maybe(num)],
  blocked: ["blocked", maybe(num)],
  unknown: ["unknown", maybe(num)],
  selfCpu: ["self_cpu", maybe(num)],
  selfRunnable: ["self_runnable", maybe(num)],
  selfBlocked: ["self_blocked", maybe(num)],
  selfUnknown: ["self_unknown", maybe(num)],
  openCalls: ["open_calls", num],
  unwoundCalls: ["unwound_calls", num],
  jumpedCalls: ["jumped_calls", num],
  tailCalls: ["tail_calls", num],
  totalCost: ["total_cost", num],
  selfCost: ["self_cost", num],
  module: ["module", text],
  file: ["file", text],
  line: ["line", num],
  function: ["function", text],
};

/** A row for each function that was called, with how the durations of its calls spread. */
export interface Spread {
  /** How many. */
  calls: number;
  /** Of them those with a begin or an end that is not known. */
  openCalls: number;
  /** Time with the function on the stack. */
  total: number;
  /** The shortest of the complete calls. */
  min: number | null;
  /** Of the complete calls. */
  mean: number | null;
  /** Half of them took no longer. */
  p50: number | null;
  /** 9 of 10 took no longer. */
  p90: number | null;
  /** 99 of 100 took no longer. */
  p99: number | null;
  /** The longest of them. */
  max: number | null;
  /** The file that it is in. */
  module: string;
  /** Its source, where that is known. */
  file: string;
  /** Where it begins there. */
  line: number;
  /** Its name. */
  function: string;
}

export const spreads: Columns<Spread> = {
  calls: ["calls", num],
  openCalls: ["open_calls", num],
  total: ["total", num],
  min: ["min", maybe(num)],
  mean: ["mean", maybe(num)],
  p50: ["p50", maybe(num)],
  p90: ["p90", maybe(num)],
  p99: ["p99", maybe(num)],
  max: ["max", maybe(num)],
  module: ["module", text],
  file: ["file", text],
  line: ["line", num],
  function: ["function", text],
};

/** A row for each value that calls had: of an argument, what they returned, a request or a frame. */
export interface Value {
  /** Its part of all time in traced functions. */
  selfShare: number;
  /** The same of its total. */
  totalShare: number;
  /** The same as total without the traced functions it called. */
  self: number;
  /** Time with the function on the stack; recursion counts once. */
  total: number;
  /** How many, with those whose begin or end is not known. */
  calls: number;
  /** The shortest of the complete calls. */
  min: number | null;
  /** Of the complete calls. */
  mean: number | null;
  /** Half of them took no longer; percentiles are exact. */
  p50: number | null;
  /** 99 of 100 took no longer. */
  p99: number | null;
  /** The longest; sorted by it, what lasts as long as its thread comes last, like main. */
  max: number | null;
  /** What recording its calls took. */
  tracing: number;
  /** The part of total on a CPU (with thread states: karst run --sched). */
  cpu: number | null;
  /** The part of total in which it could run, but had no CPU. */
  runnable: number | null;
  /** The part of total in which it waited: for a lock, a disk, another thread. */
  blocked: number | null;
  /** The part of total of which that was not recorded. */
  unknown: number | null;
  /** The part of self on a CPU. */
  selfCpu: number | null;
  /** The part of self in which it could run, but had no CPU. */
  selfRunnable: number | null;
  /** The part of self in which it waited. */
  selfBlocked: number | null;
  /** The part of self of which that was not recorded. */
  selfUnknown: number | null;
  /** Of its calls those with a begin or an end that is not known. */
  openCalls: number;
  /** Of its calls those that an exception ended. */
  unwoundCalls: number;
  /** Of its calls those that a longjmp ended. */
  jumpedCalls: number;
  /** Of its calls those that ended with a tail call. */
  tailCalls: number;
  /** What tracing took of total, which is without it; --raw leaves it in. */
  totalCost: number;
  /** The same of self. */
  selfCost: number;
  /** What it was. */
  value: string;
}

export const values: Columns<Value> = {
  selfShare: ["self_share", num],
  totalShare: ["total_share", num],
  self: ["self", num],
  total: ["total", num],
  calls: ["calls", num],
  min: ["min", maybe(num)],
  mean: ["mean", maybe(num)],
  p50: ["p50", maybe(num)],
  p99: ["p99", maybe(num)],
  max: ["max", maybe(num)],
  tracing: ["tracing", num],
  cpu: ["cpu", maybe(num)],
  runnable: ["runnable", maybe(num)],
  blocked: ["blocked", maybe(num)],
  unknown: ["unknown", maybe(num)],
  selfCpu: ["self_cpu", maybe(num)],
  selfRunnable: ["self_runnable", maybe(num)],
  selfBlocked: ["self_blocked", maybe(num)],
  selfUnknown: ["self_unknown", maybe(num)],
  openCalls: ["open_calls", num],
  unwoundCalls: ["unwound_calls", num],
  jumpedCalls: ["jumped_calls", num],
  tailCalls: ["tail_calls", num],
  totalCost: ["total_cost", num],
  selfCost: ["self_cost", num],
  value: ["value", text],
};

/** A row for each time that a thread had a lock. */
export interface LockHold {
  /** After the trace's first event. */
  begin: number;
  /** How long it had it; where the end is not known the least that it had it. */
  duration: number;
  /** How long it had waited for it. */
  waited: number;
  /** How: released, released by another thread, thread ended, trace ended, not known. */
  ended: string;
  /** What kind of lock it is: mutex, rwlock, rwlock (shared), spinlock. */
  kind: string;
  /** Its address. */
  lock: string;
  /** What the program called it by karst_name_lock(). */
  name: string;
  /** Of its thread: in TraceInfo.processes. */
  process: number;
  /** That had it: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** The function that released it: in TraceInfo.functions; -1: none. */
  releasedIn: number | null;
  /** The function that took it: in TraceInfo.functions; -1: none. */
  takenIn: number;
}

export const lockHolds: Columns<LockHold> = {
  begin: ["begin", num],
  duration: ["duration", num],
  waited: ["waited", num],
  ended: ["ended", text],
  kind: ["kind", text],
  lock: ["lock", text],
  name: ["name", text],
  process: ["process", place],
  thread: ["thread", place],
  releasedIn: ["released_in", maybe(place)],
  takenIn: ["taken_in", place],
};

/** A row for each two locks of a ring, of which one was taken while the other one was held. */
export interface LockOrder {
  /** What kind of lock was held. */
  kind: string;
  /** Its address. */
  lock: string;
  /** What the program called it. */
  name: string;
  /** The function that took it: in TraceInfo.functions; -1: none. */
  takenIn: number;
  /** The address of the lock that was taken then. */
  nextLock: string;
  /** The function that took that one: in TraceInfo.functions; -1: none. */
  nextTakenIn: number;
  /** That did so first: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** When it did. */
  begin: number;
  /** Whether it did not get the second one until the end. */
  waits: boolean;
  /** How often that happened. */
  times: number;
}

export const lockOrders: Columns<LockOrder> = {
  kind: ["kind", text],
  lock: ["lock", text],
  name: ["name", text],
  takenIn: ["taken_in", place],
  nextLock: ["next_lock", text],
  nextTakenIn: ["next_taken_in", place],
  thread: ["thread", place],
  begin: ["begin", num],
  waits: ["waits", flag],
  times: ["times", num],
};

/** A row for each pair of functions of which one waited for a lock that the other one had. */
export interface LockPair {
  /** Times that the function waited. */
  waits: number;
  /** Of these waits together. */
  total: number;
  /** The longest of them. */
  longest: number;
  /** What the thread that had the lock was in as the wait began: in TraceInfo.functions; -1: none. */
  heldIn: number | null;
  /** Where that thread took it (karst run --system locks=all): in TraceInfo.functions; -1: none. */
  takenIn: number | null;
  /** That waited: in TraceInfo.functions; -1: none. */
  function: number;
}

export const lockPairs: Columns<LockPair> = {
  waits: ["waits", num],
  total: ["total", num],
  longest: ["longest", num],
  heldIn: ["held_in", maybe(place)],
  takenIn: ["taken_in", maybe(place)],
  function: ["function", place],
};

/** A row for each ring of locks that as many threads can wait in for ever: two that were taken in both orders, or more. */
export interface LockRing {
  /** How many are in it. */
  locks: number;
}

export const lockRings: Columns<LockRing> = {
  locks: ["locks", num],
};

/** A row for each time that a thread waited for a lock. */
export interface LockWait {
  /** After the trace's first event. */
  begin: number;
  /** How long it waited; of an open wait what is known of it. */
  duration: number;
  /** Whether its begin or its end is not known. */
  open: boolean;
  /** What kind of lock it is: mutex, rwlock, spinlock, condition, semaphore, barrier. */
  kind: string;
  /** Its address. */
  lock: string;
  /** What the program called it by karst_name_lock(). */
  name: string;
  /** Of its thread: in TraceInfo.processes. */
  process: number;
  /** That waited: in TraceInfo.threads; -1: not known. */
  thread: number;
  /** The thread that had the lock as the wait began, by its id. */
  holderTid: number | null;
  /** The innermost call of that thread then: in TraceInfo.functions; -1: none. */
  heldIn: number | null;
  /** Where that thread took it (karst run --system locks=all): in TraceInfo.functions; -1: none. */
  takenIn: number | null;
  /** How many threads had it then, as far as holds tell. */
  owners: number;
  /** That waited: in TraceInfo.functions; -1: none. */
  function: number;
}

export const lockWaits: Columns<LockWait> = {
  begin: ["begin", num],
  duration: ["duration", num],
  open: ["open", flag],
  kind: ["kind", text],
  lock: ["lock", text],
  name: ["name", text],
  process: ["process", place],
  thread: ["thread", place],
  holderTid: ["holder_tid", maybe(num)],
  heldIn: ["held_in", maybe(place)],
  takenIn: ["taken_in", maybe(place)],
  owners: ["owners", num],
  function: ["function", place],
};

/** A row for each lock that a thread waited for, or had. */
export interface Lock {
  /** Times that a thread waited for it. */
  waits: number;
  /** Of these waits together. */
  total: number;
  /** The longest of them. */
  longest: number;
  /** Times that a thread had it, of those whose end is known. */
  holds: number | null;
  /** Of these holds together. */
  held: number | null;
  /** The longest of them. */
  longestHold: number | null;
  /** The function that took it for the longest: in TraceInfo.functions; -1: none. */
  longestHoldIn: number | null;
  /** Holds whose end is not known. */
  holdsWithoutEnd: number | null;
  /** That it is in: in TraceInfo.processes. */
  process: number;
  /** What kind of lock it is: mutex, rwlock, spinlock, condition, semaphore, barrier. */
  kind: string;
  /** Its address. */
  lock: string;
  /** What the program called it by karst_name_lock(). */
  name: string;
}

export const locks: Columns<Lock> = {
  waits: ["waits", num],
  total: ["total", num],
  longest: ["longest", num],
  holds: ["holds", maybe(num)],
  held: ["held", maybe(num)],
  longestHold: ["longest_hold", maybe(num)],
  longestHoldIn: ["longest_hold_in", maybe(place)],
  holdsWithoutEnd: ["holds_without_end", maybe(num)],
  process: ["process", place],
  kind: ["kind", text],
  lock: ["lock", text],
  name: ["name", text],
};

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

/** A row for each traced function below whose calls a function was sampled. */
export interface SampledBelow {
  /** How many. */
  samples: number;
  /** That they stand for. */
  time: number;
  /** Of the innermost traced call; empty: in none. */
  function: string;
}

export const sampledBelow: Columns<SampledBelow> = {
  samples: ["samples", num],
  time: ["time", num],
  function: ["function", text],
};

/** A row for each function that samples saw, traced or not. */
export interface SampledFunction {
  /** Of the time of all samples. */
  selfShare: number;
  /** Time in the function itself: its samples times their period, or its waits. */
  self: number;
  /** The same with what it called; recursion counts once. */
  total: number;
  /** In the function itself. */
  samples: number;
  /** With what it called. */
  totalSamples: number;
  /** In it as the innermost traced call itself. */
  tracedSamples: number;
  /** That its code is in. */
  module: string;
  /** Its source. */
  file: string;
  /** Where it begins there. */
  line: number;
  /** The traced call in which most of its time was; '-': in none, and '=': the function is that one. */
  below: string;
  /** Its name. */
  function: string;
}

export const sampledFunctions: Columns<SampledFunction> = {
  selfShare: ["self_share", num],
  self: ["self", num],
  total: ["total", num],
  samples: ["samples", num],
  totalSamples: ["total_samples", num],
  tracedSamples: ["traced_samples", num],
  module: ["module", text],
  file: ["file", text],
  line: ["line", num],
  below: ["below", text],
  function: ["function", text],
};
