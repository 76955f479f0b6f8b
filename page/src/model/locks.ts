// SPDX-License-Identifier: MIT
// Locks on the page: who had one as a wait began, and who waited while somebody had it.
import type { LockAnswer, LockTrack } from "../backend/answers";
import { attempt } from "./attempt";
import { visible } from "./names";
import { store, type Selected } from "./store";

export const lockName = ({ kind, name, lock }: Pick<LockTrack, "kind" | "name" | "lock">): string =>
  `${kind} ${visible(name) || lock}`;

/** Of a call that was just selected: who had the lock, if it is a wait for one. */
export async function completeLock(at: Selected, func: number): Promise<void> {
  const { backend, info } = store.state.traces[at.trace]!;
  if (!info.lockWaits.has(func) || info.aggregated) return;
  const facts = await backend.lock({ thread: at.thread, index: at.index });
  const { selected } = store.state;
  if (!facts || selected?.trace !== at.trace || selected.thread !== at.thread || selected.index !== at.index) return;
  store.set({ lock: { trace: at.trace, facts } });
}

/** Selects one who had a lock: who waited meanwhile is told and drawn. */
export function selectHolder(trace: number, lock: number, holder: number): Promise<void> {
  return attempt(async () => {
    const facts = await store.state.traces[trace]!.backend.holder(lock, holder);
    store.set({ selected: null, selectedSpan: null, waking: null, note: null, flows: null });
    store.set({ lock: { trace, facts }, tab: "call", dockOpen: true });
  });
}

/** What lines are drawn of: each from a thread that waited to the one that had the lock, at a time. */
export function lockLines({ wait, held, owner, waiters }: LockAnswer): { at: number; from: LockEnd; to: LockEnd }[] {
  if (!owner || owner.thread < 0) return [];
  const to = { thread: owner.thread, depth: owner.call?.depth ?? 0 };
  const line = (of: LockEnd, at: number) => ({ at, from: { thread: of.thread, depth: of.depth }, to });
  const ends = wait ? [line(wait, wait.begin)] : held ? waiters.map((w) => line(w, Math.max(w.begin, held.begin))) : [];
  return ends.filter(({ from }) => from.thread >= 0 && from.thread !== to.thread);
}

export interface LockEnd {
  readonly thread: number;
  readonly depth: number;
}
