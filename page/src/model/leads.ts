// SPDX-License-Identifier: MIT
// From a row of an answer, or a finding, to where it was in the timeline.
import { BackendError } from "../backend/types/backend";
import { deselect, moveTo, offsetOf, scrollTrack, select } from "./actions";
import { attempt } from "./attempt";
import type { Lead } from "./sql";
import { store } from "./store";
import type { Tab } from "./tabs";
import { clampView, fitThird } from "./view";

/** A moment has no length: what is around it is shown. */
function showMoment(trace: number, { begin, duration, thread }: Lead): void {
  const from = begin + offsetOf(trace);
  deselect();
  if (duration > 0) {
    store.set({ range: { begin: from, end: from + duration } });
    moveTo(fitThird(from, from + duration, store.total));
  } else {
    const span = Math.min(store.state.view.span, Math.max(store.total / 50, 1000));
    moveTo(clampView({ begin: from - span / 2, span }, store.total));
  }
  if (thread !== undefined) scrollTrack(trace, thread);
}

/** Selects the call that it names and brings it into sight, or else shows the moment. `tab` stays open. */
export function goToLead(trace: number, lead: Lead, tab: Tab): Promise<void> {
  return attempt(async () => {
    const { thread, begin, isCall } = lead;
    if (!isCall || thread === undefined) return showMoment(trace, lead);
    try {
      const call = await store.state.traces[trace]!.backend.callAt(thread, begin);
      select({ trace, thread: call.thread, index: call.index }, call, { reveal: true, tab });
    } catch (error) {
      if (!(error instanceof BackendError) || error.status !== 400) throw error;
      showMoment(trace, lead);
    }
  });
}
