// SPDX-License-Identifier: MIT
// What a person can do, in one place: buttons, keys and the timeline call these.
import type { Scope } from "../backend/types/backend";
import type { CallInfo, CallLine, CallRef } from "../backend/types/calls";
import type { NoteLine } from "../backend/types/notes";
import { attempt } from "./attempt";
import { completeFlows } from "./flows";
import { completeLock } from "./locks";
import { isAnyStale } from "./stale";
import { store, type ScopeKind, type Selected, type State } from "./store";
import type { Tab } from "./tabs";
import { threadKey } from "./tracks";
import { longestWait } from "./words";
import { between, clampView, fit, pan, reveal, wholeView, zoom, type View } from "./view";

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
let animation = 0;
/** Where the view is going; what keys add to while it moves. */
let goal: View | undefined;

let onMove = () => {};
/** Called when the view is taken elsewhere, which following does not do. */
export function whenMoved(callback: () => void): void {
  onMove = callback;
}

/** Ends a move that is under way. */
export function restView(): void {
  cancelAnimationFrame(animation);
  goal = undefined;
}

/** Calls in sight that have other numbers by now cannot be chosen: for a moment, until the next answers are there. */
function isStale(): boolean {
  if (isAnyStale()) store.set({ notice: "What came is being taken in: once more, please." });
  return isAnyStale();
}

export function setView(view: View): void {
  restView();
  onMove();
  store.set({ view: clampView(view, store.total) });
}

export function moveTo(to: View, ms = 160): void {
  restView();
  onMove();
  if (calm() || ms === 0) {
    store.set({ view: to });
    return;
  }
  goal = to;
  const from = store.state.view;
  const start = performance.now();
  const frame = (now: number) => {
    const share = Math.min(1, Math.max(0, (now - start) / ms));
    store.set({ view: between(from, to, 1 - (1 - share) ** 3) });
    if (share < 1) animation = requestAnimationFrame(frame);
    else goal = undefined;
  };
  animation = requestAnimationFrame(frame);
}

export const zoomBy = (factor: number, at = 0.5) =>
  moveTo(zoom(goal ?? store.state.view, factor, at, store.total), 120);
export const panBy = (share: number) => moveTo(pan(goal ?? store.state.view, share, store.total), 120);
export const showAll = () => moveTo(wholeView(store.total));
export const scrollBy = (pixels: number) => store.set({ scroll: Math.max(0, store.state.scroll + pixels) });

export const offsetOf = (trace: number) => (trace === 1 ? store.state.offset : 0);

/** `f`: the range, else the selected call, else everything. */
export function fitSelection(): void {
  const { range, selectedSpan, selected } = store.state;
  if (selectedSpan && selected && store.state.tab !== "range") {
    const offset = offsetOf(selected.trace);
    moveTo(fit(selectedSpan.begin + offset, selectedSpan.end + offset, store.total));
  } else if (range) moveTo(fit(range.begin, range.end, store.total));
  else showAll();
}

type Times = Pick<CallLine, "begin" | "duration" | "function"> & { depth?: number };

/** Selects a call. With its times known it is drawn at once; the panel asks for the rest. */
export function select(at: Selected, times?: Times, options: { reveal?: boolean; tab?: Tab } = {}): void {
  if (isStale()) return;
  if ((store.state.traces[at.trace]?.info.threads[at.thread]?.unreadFrom ?? null) !== null) {
    store.set({ notice: "This thread is still being read: its calls can be selected when all of it is." });
    return;
  }
  const change: { -readonly [K in keyof State]?: State[K] } = {
    selected: at,
    tableTrace: at.trace,
    tab: options.tab ?? "call",
    dockOpen: true,
  };
  change.selectedSpan =
    times?.depth !== undefined
      ? { begin: times.begin, end: times.begin + times.duration, depth: times.depth, function: times.function }
      : null;
  change.waking = null;
  change.note = null;
  change.lock = null;
  change.flows = null;
  store.set(change);
  void attempt(() => completeSelection(at));
  if (options.reveal && times) revealCall(at, times.begin, times.begin + times.duration);
}

/** Explains a call, or ends that; the panel of calls has the answer. */
export function toggleExplained(at: Selected): void {
  if (isStale()) return;
  const { explained } = store.state;
  const on = explained?.trace === at.trace && explained.thread === at.thread && explained.index === at.index;
  store.set(on ? { explained: null, pointed: null } : { explained: at, tab: "call", dockOpen: true });
}

/** Called when the facts of the selected call have come. */
export function selectedFacts(at: Selected, call: CallInfo): void {
  const { selected, selectedSpan } = store.state;
  if (selected?.index !== at.index || selected.thread !== at.thread || selected.trace !== at.trace) return;
  const wait = longestWait(call);
  const waking = wait?.waker
    ? {
        ...{ trace: at.trace, thread: at.thread, begin: wait.begin, end: wait.begin + wait.duration },
        ...{ words: wait.words, by: wait.waker },
      }
    : null;
  if (waking?.by.index !== store.state.waking?.by.index || waking?.end !== store.state.waking?.end)
    store.set({ waking });
  const span = { begin: call.begin, end: call.begin + call.duration, depth: call.depth, function: call.function };
  if (selectedSpan?.begin === span.begin && selectedSpan.end === span.end && selectedSpan.depth === span.depth) return;
  store.set({ selectedSpan: span });
}

/** Asks for what the timeline draws of a selected call: its times, and who ended its wait. */
export async function completeSelection(at: Selected): Promise<void> {
  const call = await store.state.traces[at.trace]!.backend.call({ thread: at.thread, index: at.index }, true);
  selectedFacts(at, call);
  await Promise.all([completeLock(at, call.function), completeFlows(at)]);
}

let scrollTo: (key: string, depth: number) => void = () => {};
/** The timeline says how it brings a level of a track into sight. */
export function onScrollTo(callback: typeof scrollTo): void {
  scrollTo = callback;
}
/** The same for a thread's track, once what was just changed is laid out. */
export function scrollTrack(trace: number, thread: number, depth = 0): void {
  requestAnimationFrame(() => bringTrack(trace, thread, depth));
}
export function bringTrack(trace: number, thread: number, depth = 0): void {
  scrollTo(threadKey(trace, thread), depth);
}

export function revealCall(at: Selected, begin: number, end: number): void {
  const offset = offsetOf(at.trace);
  const { choice } = store.state;
  // A call in a hidden track would be selected, but not seen.
  const info = store.state.traces[at.trace]?.info;
  const thread = info?.threads[at.thread];
  if (
    thread &&
    choice.filter !== "" &&
    !`${thread.name} ${thread.tid}`.toLowerCase().includes(choice.filter.toLowerCase())
  )
    store.set({ choice: { ...choice, filter: "" } });
  moveTo(reveal(store.state.view, begin + offset, end + offset, store.total));
  requestAnimationFrame(() => bringTrack(at.trace, at.thread, store.state.selectedSpan?.depth ?? 0));
}

export function deselect(): void {
  store.set({ selected: null, selectedSpan: null, waking: null, note: null, lock: null, flows: null });
}

/** Chooses a note, and selects the call that it was said in. Its time comes into view if it is not there. */
export function selectNote(trace: number, note: NoteLine): void {
  if (note.index !== undefined) select({ trace, thread: note.thread, index: note.index }, undefined, { tab: "notes" });
  else deselect();
  store.set({ note: { ...note, trace }, tab: "notes", dockOpen: true });
  const { view } = store.state;
  const time = note.time + offsetOf(trace);
  if (time < view.begin || time > view.begin + view.span)
    moveTo(clampView({ begin: time - view.span / 2, span: view.span }, store.total));
  scrollTrack(trace, note.thread);
}

/** The step that is being made; the next one takes its place. */
let stepping: AbortController | undefined;

/** Next or previous call of the selected (else highlighted) function. */
export function stepCall(direction: "next" | "previous", order: "time" | "duration"): Promise<void> {
  return attempt(async () => {
    const { selected, selectedSpan, highlight, traces } = store.state;
    const trace = selected?.trace ?? highlight?.trace;
    let func = selectedSpan?.function;
    if (highlight && highlight.trace === trace) func = highlight.function;
    if (trace === undefined || func === undefined) {
      store.set({ notice: "Select a call or a function first: then n and p step through its calls." });
      return;
    }
    const at: CallRef | undefined = selected && selectedSpan?.function === func ? selected : undefined;
    const { raw } = store.state;
    const query = {
      function: func,
      order,
      direction,
      raw,
      ...(at ? { at: { thread: at.thread, index: at.index } } : {}),
    };
    stepping?.abort();
    const { signal } = (stepping = new AbortController());
    const found = await traces[trace]!.backend.occurrences(query, signal);
    if (signal.aborted) return;
    const call = found.calls[0];
    if (!call) {
      const end =
        order === "time" ? (direction === "next" ? "last" : "first") : direction === "next" ? "shortest" : "longest";
      store.set({
        notice: found.count === 0 ? "This function has no calls here." : `This is the ${end} call of the function.`,
      });
      return;
    }
    const info = await traces[trace]!.backend.call({ thread: call.thread, index: call.index }, true);
    select({ trace, thread: call.thread, index: call.index }, info, { reveal: true });
  });
}

/** Selects a call known by its place alone and brings it into sight. */
export function goTo(at: Selected): Promise<void> {
  if (isStale()) return Promise.resolve();
  return attempt(async () => {
    const info = await store.state.traces[at.trace]!.backend.call({ thread: at.thread, index: at.index }, true);
    select(at, info, { reveal: true });
  });
}

/** Brings a call into sight without selecting it. */
export function lookAt(at: Selected): Promise<void> {
  if (isStale()) return Promise.resolve();
  return attempt(async () => {
    const { begin, duration, depth } = await store.state.traces[at.trace]!.backend.call(
      { thread: at.thread, index: at.index },
      true,
    );
    const offset = offsetOf(at.trace);
    moveTo(fit(begin + offset, begin + duration + offset, store.total));
    requestAnimationFrame(() => bringTrack(at.trace, at.thread, depth));
  });
}

/** From a wait to the call that ended it. */
export function goToWaker(trace: number, thread: number, state: number): Promise<void> {
  return attempt(async () => {
    const line = await store.state.traces[trace]!.backend.state(thread, state);
    if (line.waker) await goTo({ trace, thread: line.waker.thread, index: line.waker.index });
    else store.set({ notice: line.words });
  });
}

export function highlight(trace: number, func: number | null): void {
  if (func !== null && store.state.traces.some((t) => t.info.reading)) {
    store.set({ notice: "The trace is still being read: functions can be highlighted when all of it is." });
    return;
  }
  store.set({
    highlight: func === null ? null : { trace, function: func },
    ...(func === null ? {} : { tableTrace: trace }),
  });
}

export function changeSet<T>(set: ReadonlySet<T>, key: T, on?: boolean): ReadonlySet<T> {
  const next = new Set(set);
  if (on ?? !next.has(key)) next.add(key);
  else next.delete(key);
  return next;
}

export function togglePinned(key: string): void {
  const { choice } = store.state;
  store.set({ choice: { ...choice, pinned: changeSet(choice.pinned, key) } });
}

export function toggleFolded(key: string): void {
  const { choice } = store.state;
  store.set({ choice: { ...choice, folded: changeSet(choice.folded, key) } });
}

const ranking = new Set<number>();

/** Asks once for what an order of threads goes by. */
export function wantRanks(): void {
  const { choice, traces } = store.state;
  if (!["slowest", "blocked", "cpu"].includes(choice.order)) return;
  traces.forEach(({ backend, info }, t) => {
    if (info.reading || store.state.ranks[t] || ranking.has(t)) return;
    ranking.add(t);
    void attempt(async () => {
      const [sums, slow] = await Promise.all([backend.threads({}), backend.outliers({})]);
      const ranks = [...store.state.ranks];
      ranks[t] = { slowest: slow.excess.map((of) => of.excess), blocked: sums.blocked, cpu: sums.cpu };
      store.set({ ranks });
    }).finally(() => ranking.delete(t));
  });
}

/** The part of the trace that table and flame graph are about. Which trace: the selection's, else the first. */
export function scopeOf(state: State, kind: ScopeKind = state.scope): { trace: number; scope: Scope; label: string } {
  const part = partOf(state, kind);
  return state.raw ? { ...part, scope: { ...part.scope, raw: true } } : part;
}

function partOf(state: State, kind: ScopeKind): { trace: number; scope: Scope; label: string } {
  const chosen = kind === "thread" || kind === "call" ? state.selected?.trace : undefined;
  const trace = Math.min(chosen ?? state.tableTrace, Math.max(0, state.traces.length - 1));
  const offset = trace === 1 ? state.offset : 0;
  switch (kind) {
    case "view": {
      const { begin, span } = state.followed ?? state.view;
      return {
        trace,
        scope: { begin: Math.max(0, begin - offset), end: Math.max(1, begin + span - offset) },
        label: "in view",
      };
    }
    case "range":
      if (state.range) {
        const { begin, end } = state.range;
        return {
          trace,
          scope: { begin: Math.max(0, begin - offset), end: Math.max(0, end - offset) },
          label: "in range",
        };
      }
      break;
    case "thread":
      if (state.selected) return { trace, scope: { threads: [state.selected.thread] }, label: "in thread" };
      break;
    case "call":
      if (state.selected)
        return { trace, scope: { thread: state.selected.thread, index: state.selected.index }, label: "in call" };
      break;
    case "all":
      break;
  }
  return { trace, scope: {}, label: "everything" };
}
