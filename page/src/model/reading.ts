// SPDX-License-Identifier: MIT
// While a trace is still being read: what of it is there.
import type { ThreadInfo, TraceInfo } from "../backend/types/trace";
import { count, percent } from "./time";

/** Whether something of a thread's time from `begin` to `end` is not read yet. */
export function isUnread(thread: ThreadInfo, begin: number, end: number): boolean {
  return thread.unreadFrom !== null && thread.unreadFrom <= end && thread.end >= begin;
}

/** Whether nothing of it is. */
export function isUntouched(thread: ThreadInfo): boolean {
  return thread.unreadFrom !== null && thread.depths === 0;
}

/** How far it is. */
export function readingWords(info: TraceInfo, share: number): string {
  const { length } = info.threads;
  const read = info.threads.filter((thread) => thread.unreadFrom === null).length;
  const threads = length === 1 ? "" : `: ${count(read)} of ${count(length)} threads`;
  return `Still reading this trace${threads}, ${percent(share)} of its events. Tables, search and sums wait for all of it.`;
}

/** Ids of the tracks of which more is there than before. */
export function moreRead(before: TraceInfo, after: TraceInfo): Set<number> {
  const more = after.tracks.filter(({ kind, owner }) => {
    const unreadFrom = before.threads[owner]?.unreadFrom ?? null;
    return kind === "thread" && unreadFrom !== null && unreadFrom !== after.threads[owner]?.unreadFrom;
  });
  return new Set(more.map(({ id }) => id));
}
