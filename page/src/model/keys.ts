// SPDX-License-Identifier: MIT
// Keys that work wherever the focus is, but in text fields and dialogs.
import { openMenu, selectVisible, walk, walkTrack } from "../timeline/steps";
import {
  deselect,
  fitSelection,
  highlight,
  moveTo,
  offsetOf,
  panBy,
  scrollBy,
  showAll,
  stepCall,
  toggleExplained,
  toggleFolded,
  togglePinned,
  zoomBy,
} from "./actions";
import { toggleAllFolded } from "./folding";
import { toggleFollowing } from "./following";
import { store } from "./store";
import { TABS } from "./tabs";
import { threadKey } from "./tracks";
import { fitThird } from "./view";

export const THEMES = ["auto", "light", "dark"] as const;

export function nextTheme(): void {
  const next = THEMES[(THEMES.indexOf(store.state.theme) + 1) % THEMES.length]!;
  store.set({ theme: next, notice: `Theme: ${next === "auto" ? "as the system’s" : next}` });
  try {
    localStorage.setItem("karst-theme", next);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }
}

/** Keeps the selected call, or compares it with the kept one. */
export function compareSelected(): void {
  const { baseline, selected } = store.state;
  if (!selected) store.set({ notice: "Select a call first." });
  else if (!baseline)
    store.set({
      baseline: selected,
      notice: "Kept for comparison. Now select the call to compare it with, and press c.",
    });
  else store.set({ tab: "compare", dockOpen: true, notice: "" });
}

/** A range without a mouse: of the selected call, else of what is in view. Its edges can be typed. */
export function measureSelected(): void {
  const { selected, selectedSpan, view } = store.state;
  const offset = selected ? offsetOf(selected.trace) : 0;
  const range = selectedSpan
    ? { begin: selectedSpan.begin + offset, end: selectedSpan.end + offset }
    : { begin: Math.max(0, view.begin), end: Math.min(store.total, view.begin + view.span) };
  store.set({ range, tab: "range", dockOpen: true });
}

function escape(): void {
  const { measuring, range, highlight: marked, selected, lock, frame, baseline } = store.state;
  if (measuring) store.set({ measuring: false });
  else if (marked) store.set({ highlight: null });
  else if (range) store.set({ range: null });
  else if (selected || lock) deselect();
  else if (frame) store.set({ frame: null, frameSpan: null });
  else if (baseline) store.set({ baseline: null });
}

function onTrack(action: (key: string) => void): void {
  const { selected } = store.state;
  if (selected) action(threadKey(selected.trace, selected.thread));
  else store.set({ notice: "Select a call in the track first." });
}

const PLAIN: Record<string, () => void> = {
  w: () => zoomBy(0.6),
  s: () => zoomBy(1 / 0.6),
  a: () => panBy(-0.25),
  d: () => panBy(0.25),
  ArrowLeft: () => panBy(-0.15),
  ArrowRight: () => panBy(0.15),
  ArrowUp: () => scrollBy(-72),
  ArrowDown: () => scrollBy(72),
  "+": () => zoomBy(0.6),
  "-": () => zoomBy(1 / 0.6),
  f: fitSelection,
  "0": showAll,
  Home: showAll,
  n: () => void stepCall("next", "time"),
  p: () => void stepCall("previous", "time"),
  N: () => void stepCall("next", "duration"),
  P: () => void stepCall("previous", "duration"),
  PageDown: () => walkTrack(1),
  PageUp: () => walkTrack(-1),
  "/": () => {
    const box = document.getElementById("search") as HTMLInputElement | null;
    box?.focus();
    box?.select(); // what is typed takes the place of the last search
  },
  "?": () => store.set({ help: true }),
  m: () =>
    store.set({
      measuring: !store.state.measuring,
      notice: store.state.measuring ? "" : "Measuring: drag in the timeline. m or Esc ends it.",
    }),
  r: measureSelected,
  h: () => {
    const { selected, selectedSpan, highlight: marked } = store.state;
    if (marked) highlight(marked.trace, null);
    else if (selected && selectedSpan) highlight(selected.trace, selectedSpan.function);
    else store.set({ notice: "Select a call first." });
  },
  c: compareSelected,
  l: toggleFollowing,
  e: () => {
    const { selected } = store.state;
    if (selected) toggleExplained(selected);
    else store.set({ notice: "Select a call first." });
  },
  b: () => store.set({ dockOpen: !store.state.dockOpen }),
  k: () => onTrack(toggleFolded),
  K: toggleAllFolded,
  i: () => onTrack(togglePinned),
  t: nextTheme,
  ContextMenu: openMenu,
  Escape: escape,
};

const SHIFTED: Record<string, () => void> = {
  ArrowUp: () => walk("up"),
  ArrowDown: () => walk("down"),
  ArrowLeft: () => walk("left"),
  ArrowRight: () => walk("right"),
  F10: openMenu,
};

/** Enter: a selected call takes a third of the width; else one is selected. */
function fitOrSelect(): void {
  const { selected, selectedSpan } = store.state;
  if (!selected || !selectedSpan) return selectVisible();
  const offset = offsetOf(selected.trace);
  moveTo(fitThird(selectedSpan.begin + offset, selectedSpan.end + offset, store.total));
}

export function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || store.state.help) return;
  if (target.closest("input, select, textarea")) {
    if (event.key === "Escape") (target as HTMLInputElement).blur();
    return;
  }
  const inTimeline = target === document.body || target.closest(".canvas-area") !== null;
  // Buttons, lists and scrolling boxes keep the keys that are theirs.
  if (!inTimeline && /^(Enter| |Arrow|Page|Home|End|ContextMenu|F10)/.test(event.key)) return;
  let action = event.shiftKey ? (SHIFTED[event.key] ?? PLAIN[event.key]) : PLAIN[event.key];
  if (/^[1-9]$/.test(event.key)) action = () => store.set({ tab: TABS[Number(event.key) - 1]!.id, dockOpen: true });
  if (event.key === "Enter" && inTimeline) action = fitOrSelect;
  if (!action) return;
  event.preventDefault();
  action();
}
