// SPDX-License-Identifier: MIT
// Texts for the clipboard: the selected call in a line, its name, a link to what is seen.
import { attempt } from "./attempt";
import { store } from "./store";
import { toHash } from "./url";
import { callLine } from "./words";

/** Of the selected call; undefined: there is none, or its times are not known yet. */
export function selectedLine(): string | undefined {
  const { selected, selectedSpan, traces } = store.state;
  const trace = selected && traces[selected.trace];
  return trace && selectedSpan ? callLine(trace.info, selected.thread, selectedSpan) : undefined;
}

/** Ctrl+C: text that is selected is the browser's to copy. */
export function onCopy(event: ClipboardEvent): void {
  if (getSelection()?.isCollapsed === false || (event.target as Element).closest?.("input, textarea")) return;
  const line = selectedLine();
  if (line === undefined) return;
  event.clipboardData?.setData("text/plain", line);
  event.preventDefault();
  store.set({ notice: `Copied: ${line}` });
}

export function copyText(text: string): void {
  void attempt(async () => {
    await navigator.clipboard.writeText(text);
    store.set({ notice: `Copied: ${text}` });
  });
}

/** The address of what is seen now: the page's own is written a moment later. */
export const linkHere = (): string => `${location.href.replace(/#.*/, "")}#${toHash(store.state)}`;
