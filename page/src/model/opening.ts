// SPDX-License-Identifier: MIT
// Where a page opens whose address says nothing: on the longest moment that was kept, else around the call that took
// longest beyond its usual time. A whole trace seen at once is haze.
import type { LeftCall, SlowCall } from "../backend/answers";
import type { MomentInfo, TraceInfo } from "../backend/types/trace";
import { goTo, moveTo, offsetOf, scrollTrack, select } from "./actions";
import { firstPicture } from "./first_picture";
import { store } from "./store";
import { foldAllBut } from "./folding";
import { fit, fitThird, type View } from "./view";

/** What goes through all calls, as looking for slow ones does: a page that was just opened does not wait for more than so many. */
export const MOST_CALLS = 20_000_000;
const MANY_THREADS = 8;

/** Kept calls, of which there is something to be seen; the longest first. */
export function keptMoments(info: Pick<TraceInfo, "processes">): MomentInfo[] {
  return info.processes
    .flatMap((process) => process.moments)
    .sort((a, b) => b.end - b.begin - (a.end - a.begin) || a.number - b.number);
}

/** Shows a moment, selects its call where it is one, and makes it the range that tables can be about. */
export async function openMoment(trace: number, moment: MomentInfo): Promise<void> {
  const offset = offsetOf(trace);
  const { begin, end, thread, index } = moment;
  if (end > begin) store.set({ range: { begin: begin + offset, end: end + offset } });
  const around = end > begin ? { begin, end } : { begin: begin - 5e6, end: begin + 5e6 };
  const seen = fit(around.begin + offset, around.end + offset, store.total);
  moveTo(seen);
  if (thread >= 0) scrollTrack(trace, thread);
  if (index === null) return;
  await goTo({ trace, thread, index });
  moveTo(seen);
}

/** Selects a slow call and shows what was around it; the list of them stays. */
export function openOutlier(trace: number, call: SlowCall): void {
  const at = { trace, thread: call.thread, index: call.index };
  select(at, { ...call, duration: call.recorded }, { tab: "outliers" });
  const offset = offsetOf(trace);
  moveTo(fitThird(call.begin + offset, call.begin + call.recorded + offset, store.total));
  scrollTrack(trace, call.thread, call.depth);
}

/** The same for one whose end is not known: up to when it may have lasted. */
export function openLeft(trace: number, call: LeftCall): void {
  const at = { trace, thread: call.thread, index: call.index };
  select(at, { ...call, duration: call.recorded }, { tab: "outliers" });
  const offset = offsetOf(trace);
  moveTo(fitThird(call.begin + offset, call.begin + call.most + offset, store.total));
  scrollTrack(trace, call.thread, call.depth);
}

let touched = false;

/** From now on it is noted whether a person does anything: then the page stays where it is. */
export function watchHands(): void {
  touched = false;
  for (const kind of ["keydown", "pointerdown", "wheel"])
    addEventListener(kind, () => (touched = true), { capture: true, once: true, passive: true });
}

/** `view`: where the page was when it opened; a person who has gone on from there is left alone. */
export async function openOnFinding(view: View, wanted?: number): Promise<void> {
  const { info, backend } = store.state.traces[0]!;
  if (touched || info.range || info.aggregated) return;
  const moments = keptMoments(info);
  const moment = wanted === undefined ? moments[0] : moments.find(({ number }) => number === wanted);
  if (moment && (wanted !== undefined || moment.end > moment.begin)) return await openMoment(0, moment);
  if (wanted !== undefined) {
    store.set({ notice: `This trace has no kept moment ${wanted}.` });
    return;
  }
  if (info.calls > MOST_CALLS) return;
  await firstPicture();
  const { slow, left } = await backend.outliers({});
  const worst = slow[0];
  const { state } = store;
  if (touched || state.view !== view || state.selected) return;
  // Nothing stands out: of many threads an overview.
  if (!worst && left[0]) return openLeft(0, left[0]);
  if (!worst) return info.threads.length > MANY_THREADS ? foldAllBut(0, [0]) : undefined;
  foldAllBut(0, worst.waker === null ? [worst.thread] : [worst.thread, worst.waker]);
  openOutlier(0, worst);
}
