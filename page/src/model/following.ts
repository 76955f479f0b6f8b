// SPDX-License-Identifier: MIT
// A trace whose recording goes on: the page takes in what came since, and the view goes on with it.
//
// What comes is taken in some times in a few seconds, and time passes meanwhile. So that the view moves and does not
// jump, it runs behind the newest time by about as long as it takes to hear of more, as fast as time passes.
import { calm, restView } from "./actions";
import { attempt } from "./attempt";
import { renewTraces } from "./renewing";
import { store, type State } from "./store";
import { clampView, type View } from "./view";

const KEY = "karst-follows";
const PAUSE = 1000; // ms from one time to the next, at least
const WIDEST_NS = 10e9; // of the newest time, when nobody has chosen a view
const AIR = 0.02; // of the view, behind the newest time

function remember(follows: boolean): void {
  try {
    if (follows) sessionStorage.setItem(KEY, "1");
    else sessionStorage.removeItem(KEY);
  } catch {
    // Storage may be forbidden: then a page that is opened again does not go on.
  }
}

/** Whether this page followed when somebody opened it again. */
export function follows(): boolean {
  try {
    return sessionStorage.getItem(KEY) === "1";
  } catch {
    return false;
  }
}

/** The newest part of a trace, as wide as what was seen before. */
export function newestView(before: View, total: number): View {
  const span = Math.min(before.span, WIDEST_NS, Math.max(total, 1) * 1.04);
  return clampView({ begin: total + span * AIR - span, span }, total);
}

/** Where the view's newest time is, and how it goes on. */
export class Pace {
  private at: number; // ns
  private speed = 0; // ns a ms
  private asOf: number; // ms

  constructor(
    private end: number,
    now: number,
  ) {
    this.at = end;
    this.asOf = now;
  }

  /** More is there, up to `end`; the next is expected after `ms`. */
  reach(end: number, ms: number, now: number): void {
    this.at = this.now(now);
    this.end = end;
    this.asOf = now;
    this.speed = Math.max(0, end - this.at) / Math.max(ms, 1);
  }

  now(now: number): number {
    return Math.min(this.end, this.at + this.speed * Math.max(0, now - this.asOf));
  }
}

let pace: Pace | undefined;
let frame = 0;
let last = 0; // when more was taken in
let busy = false;

/** What is known is shown at once; from then on the view moves. */
function begin(): void {
  restView();
  const { total } = store;
  const view = newestView(store.state.view, total);
  last = performance.now();
  pace = new Pace(total, last);
  store.set({ following: true, view, followed: view });
}

function move(now: number): void {
  frame = 0;
  if (!pace || !store.state.following) return;
  const { view } = store.state;
  const to = calm() ? store.total : pace.now(now);
  const begin = to + view.span * AIR - view.span;
  if (begin !== view.begin) store.set({ view: { begin, span: view.span } });
  if (!calm()) frame = requestAnimationFrame(move);
}

function cameMore(): void {
  const { view, following } = store.state;
  if (!following) return;
  const now = performance.now();
  pace?.reach(store.total, Math.min(now - last, 5000), now);
  last = now;
  store.set({ followed: newestView(view, store.total) });
  if (frame === 0) frame = requestAnimationFrame(move);
}

/** Whether there may be more to come: of what a server has. */
export const grows = ({ traces }: State = store.state): boolean =>
  traces.some(({ info, backend }) => info.growing && backend.kind === "server");

/** One renewal at a time. What fails is told, and ends following. */
async function takeIn(newest: boolean): Promise<void> {
  if (busy) return;
  busy = true;
  let failed = false;
  try {
    if (await renewTraces(newest)) {
      rememberGrowth();
      cameMore();
    }
    if (store.state.following && !grows()) stopFollowing("The recording has ended.");
  } catch (error) {
    failed = true;
    store.set({ notice: (error as Error).message });
    stopFollowing((error as Error).message);
  } finally {
    busy = false;
  }
  // Somebody stopped it meanwhile.
  if (!store.state.following && isPart() && !failed) void takeIn(false);
}

/** What came since is shown, and what comes, until a person looks elsewhere. */
export function follow(): void {
  remember(true);
  begin();
  if (store.state.grown) void takeIn(true);
}

export function stopFollowing(why = "No longer following. l goes on."): void {
  if (!store.state.following) return;
  remember(false);
  cancelAnimationFrame(frame);
  frame = 0;
  pace = undefined;
  store.set({ following: false, followed: null, notice: why });
  if (isPart()) void takeIn(false);
}

const isPart = () => store.state.traces.some(({ from }) => from !== undefined);

/** For the key: there may be nothing to follow. */
export function toggleFollowing(): void {
  if (store.state.following) stopFollowing();
  else if (grows()) follow();
  else store.set({ notice: "The recording of this trace has ended." });
}

/** What the server said last; it says a thing once. */
let heard = { grown: false, generation: 0 };

/** The server says so: `grown`, there is more in the file than this page has; `generation`, the newest there is. */
export function hearOfGrowth(grown: boolean, generation: number): void {
  heard = { grown, generation };
  if (store.state.grown !== grown) store.set({ grown });
}

/** It may have been said of what was taken in while that was on its way. */
function rememberGrowth(): void {
  const { generation } = store.state;
  const grown = heard.generation > generation || (heard.generation === generation && heard.grown);
  if (store.state.grown !== grown) store.set({ grown });
}

/** The server has let go what this page shows: what is there now takes its place. */
export function takeInWhatIsThere(): void {
  void attempt(() => takeIn(store.state.following));
}

/** A page that follows does so as long as somebody looks. */
export function goOnFollowing(): void {
  setInterval(() => {
    const { following, grown } = store.state;
    const due = performance.now() - last >= PAUSE;
    if (following && grown && due && document.visibilityState === "visible") void takeIn(true);
  }, PAUSE / 10);
}

/** The timeline stays where a hand takes hold of it. */
export function letHandsStopIt(): void {
  const stop = (event: Event) => {
    if (event.target instanceof Element && event.target.closest(".canvas-area, .minimap")) stopFollowing();
  };
  for (const kind of ["pointerdown", "wheel"]) addEventListener(kind, stop, { capture: true, passive: true });
}
