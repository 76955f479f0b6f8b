// While a trace is still being read: what of it is there.
import type { ThreadInfo, TraceInfo } from "../backend/types";
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
