// SPDX-License-Identifier: MIT
// Folding all tracks at once: an overview, in which a thread is a strip.
import { changeSet } from "./actions";
import { store } from "./store";
import { ROW, threadKey } from "./tracks";

function threadKeys(): string[] {
  return store.state.traces.flatMap(({ info }, t) => info.threads.map((thread) => threadKey(t, thread.index)));
}

/** Folds all threads; when all are folded, unfolds them. */
export function toggleAllFolded(): void {
  const { choice } = store.state;
  const keys = threadKeys();
  const fold = keys.some((key) => !choice.folded.has(key));
  const folded = keys.reduce((set, key) => changeSet(set, key, fold), choice.folded);
  store.set({ choice: { ...choice, folded }, scroll: 0 });
}

/** Folds all threads but some, if they would not fit on the screen otherwise. */
export function foldAllBut(trace: number, threads: readonly number[]): void {
  const { choice, traces } = store.state;
  const levels = traces.flatMap(({ info }) => info.threads.map((thread) => thread.depths));
  if (levels.reduce((sum, n) => sum + (n + 1) * ROW, 0) < window.innerHeight * 0.9) return;
  const open = new Set(threads.map((thread) => threadKey(trace, thread)));
  store.set({ choice: { ...choice, folded: new Set(threadKeys().filter((key) => !open.has(key))) } });
}
