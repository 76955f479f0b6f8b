// SPDX-License-Identifier: MIT
// A trace whose recording goes on: the page is opened again for what came since, by hand or again and again.
import { store } from "./store";
import { clampView, type View } from "./view";

const KEY = "karst-follows";
const PAUSE = 1500; // ms between two openings, at least
const WIDEST_NS = 10e9; // of the newest time, when nobody has chosen a view

function remember(follows: boolean): void {
  try {
    if (follows) sessionStorage.setItem(KEY, "1");
    else sessionStorage.removeItem(KEY);
  } catch {
    // Storage may be forbidden: then each step is by hand.
  }
}

/** Whether this page was opened by follow(), or by itself since. */
export function follows(): boolean {
  try {
    return sessionStorage.getItem(KEY) === "1";
  } catch {
    return false;
  }
}

/** The newest part of the trace, as wide as what was seen before. */
export function newestView(before: View, total: number): View {
  const span = Math.min(before.span, WIDEST_NS, Math.max(total, 1) * 1.04);
  return clampView({ begin: total + span * 0.02 - span, span }, total);
}

/** Opens the page with what there is by now; `index.html`: with what another page was opened with. */
const openAgain = (address: "./" | "index.html") => {
  // The address is written when the view has come to rest, which it may not have.
  const to = new URL(address + location.hash, location.href);
  if (to.pathname === location.pathname) location.reload();
  else location.replace(to);
};

/** What came since is shown, and what comes, until a person does anything. */
export function follow(): void {
  remember(true);
  store.set({ following: true });
  openAgain("./");
}

export function stopFollowing(): void {
  if (!store.state.following) return;
  remember(false);
  store.set({ following: false, notice: "No longer following. l goes on." });
}

/** For the key: there may be nothing to follow. */
export function toggleFollowing(): void {
  if (store.state.following) stopFollowing();
  else if (store.state.traces.some(({ info }) => info.growing)) follow();
  else store.set({ notice: "The recording of this trace has ended." });
}

/** The server says so: `grown`, there is more in the file. It says it once. */
export function hearOfGrowth(grown: boolean): void {
  if (store.state.grown !== grown) store.set({ grown });
}

/** A page that was opened by follow() goes on, as long as somebody looks. */
export function goOnFollowing(): void {
  setInterval(() => {
    const { following, grown } = store.state;
    if (following && grown && document.visibilityState === "visible") openAgain("./");
  }, PAUSE);
}

/** The server has read the file again for another page: numbers of threads and calls are those of that now. */
export function hearOfAnother(): void {
  openAgain("index.html");
}

/** A page that follows stays where a hand takes it. */
export function letHandsStopIt(): void {
  const stop = (event: Event) => {
    if (event instanceof KeyboardEvent && (event.key === "l" || event.key.length > 1)) return;
    if (event.target instanceof Element && event.target.closest("[data-follows]")) return;
    stopFollowing();
  };
  for (const kind of ["keydown", "pointerdown", "wheel"])
    addEventListener(kind, stop, { capture: true, passive: true });
}
