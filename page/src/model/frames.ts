// SPDX-License-Identifier: MIT
// Frames on the page: the chosen one, and the target by which they are coloured.
import type { FrameLine } from "../backend/types/frames";
import { moveTo, offsetOf } from "./actions";
import { store, type Range } from "./store";
import { fitThird } from "./view";

/** Of 60 a second. */
export const TARGET_MS = 16.7;
const LONGEST_MS = 1e7;
const KEPT = "karst-frame-target";

/** How long a frame took against the target; `unknown`: nobody marked where it begins. */
export const FRAME_CLASSES = ["within", "over", "far", "unknown"] as const;
export const classOf = (duration: number, marked: boolean, targetNs: number): number =>
  !marked ? 3 : duration <= targetNs ? 0 : duration <= 2 * targetNs ? 1 : 2;

export const isTarget = (ms: number): boolean => Number.isFinite(ms) && ms >= 0.000001 && ms <= LONGEST_MS;

/** As the person wrote it. */
export const targetWords = (targetNs: number): string => `${targetNs / 1e6} ms`;

/** What was chosen on a page before. */
export function keptTarget(): number {
  try {
    const ms = Number(localStorage.getItem(KEPT) ?? TARGET_MS);
    return isTarget(ms) ? ms : TARGET_MS;
  } catch {
    return TARGET_MS;
  }
}

export function setTarget(ms: number): void {
  store.set({ frameTarget: ms });
  try {
    localStorage.setItem(KEPT, String(ms));
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }
}

/** Chooses a frame: the panel tells of it. */
export function selectFrame(trace: number, set: number, number: number, frameSpan: Range): void {
  store.set({ frame: { trace, set, number }, frameSpan, tab: "frames", dockOpen: true });
}

/** The same of one that may lie out of sight: it comes into view. */
export function goToFrame(trace: number, set: number, { number, begin, duration }: FrameLine): void {
  selectFrame(trace, set, number, { begin, end: begin + duration });
  const from = begin + offsetOf(trace);
  moveTo(fitThird(from, from + duration, store.total));
}
