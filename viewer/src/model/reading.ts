// While a trace is still being read: what of it is there, and what becomes of a page when all is.
//
// Functions have other numbers then, and rows of a thread that was read in part may have.
import type { FunctionInfo, ThreadInfo, TraceInfo } from "../backend/types";
import type { State } from "./store";
import { count, percent } from "./time";

/** Whether something of a thread's time from `begin` to `end` is not read yet. */
export function isUnread(thread: ThreadInfo, begin: number, end: number): boolean {
  return thread.unreadFrom !== undefined && thread.unreadFrom <= end && thread.end >= begin;
}

/** Whether nothing of it is. */
export function isUntouched(thread: ThreadInfo): boolean {
  return thread.unreadFrom !== undefined && thread.maxDepth === 0;
}

/** How far it is. */
export function readingWords(info: TraceInfo, share: number): string {
  const { length } = info.threads;
  const read = info.threads.filter((thread) => thread.unreadFrom === undefined).length;
  const threads = length === 1 ? "" : `: ${count(read)} of ${count(length)} threads`;
  return `Still reading this trace${threads}, ${percent(share)} of its events. Tables, search and sums wait for all of it.`;
}

/** Threads of which more is there than before. */
export function moreRead(before: TraceInfo, after: TraceInfo): Set<number> {
  const more = new Set<number>();
  before.threads.forEach((thread, i) => {
    if (thread.unreadFrom !== undefined && thread.unreadFrom !== after.threads[i]?.unreadFrom) more.add(i);
  });
  return more;
}

const key = (f: FunctionInfo) => [f.module, f.name, f.file, f.line].join("\0");

/** The numbers that functions have after, by those before. */
export function renumbered(before: readonly FunctionInfo[], after: readonly FunctionInfo[]): Uint32Array {
  const numbers = new Map(after.map((f, i) => [key(f), i]));
  return Uint32Array.from(before, (f) => numbers.get(key(f)) ?? 0);
}

type Kept = Pick<State, "selected" | "selectedSpan">;

/** What stays of a selection that was made while the trace was being read. */
export function settledSelection({ selected, selectedSpan }: Kept, before: TraceInfo, after: TraceInfo): Kept {
  if (!selected || before.threads[selected.thread]?.unreadFrom !== undefined)
    return { selected: null, selectedSpan: null };
  if (!selectedSpan) return { selected, selectedSpan };
  const func = renumbered(before.functions, after.functions)[selectedSpan.function];
  return { selected, selectedSpan: func === undefined ? null : { ...selectedSpan, function: func } };
}
