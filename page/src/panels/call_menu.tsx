// SPDX-License-Identifier: MIT
// What one can do with the selected call, beside it: by a right click, or by the menu key.
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { highlight, lookAt, stepCall, toggleExplained } from "../model/actions";
import { copyText, linkHere, selectedLine } from "../model/copying";
import { compareSelected, measureSelected } from "../model/keys";
import { readable } from "../model/names";
import { store, useStore, type Selected } from "../model/store";

interface Entry {
  readonly label: string;
  readonly key?: string;
  readonly action: () => void;
}

function entriesOf(at: Selected, func: number, name: string): Entry[] {
  const { baseline, highlight: marked } = store.state;
  const isMarked = marked?.trace === at.trace && marked.function === func;
  return [
    { label: "Zoom to it", key: "f", action: () => void lookAt(at) },
    { label: "Times, callers and source", key: "1", action: () => store.set({ tab: "call", dockOpen: true }) },
    { label: "Explain why it took so long", key: "e", action: () => toggleExplained(at) },
    { label: "Measure it", key: "r", action: measureSelected },
    { label: "Next call of its function", key: "n", action: () => void stepCall("next", "time") },
    { label: "Next longer call of its function", key: "P", action: () => void stepCall("previous", "duration") },
    {
      label: isMarked ? "End highlighting" : "Highlight its function’s calls",
      key: "h",
      action: () => highlight(at.trace, isMarked ? null : func),
    },
    { label: baseline ? "Compare with the kept call" : "Keep for comparison", key: "c", action: compareSelected },
    { label: "Copy as a line of text", key: "Ctrl C", action: () => copyText(selectedLine()!) },
    { label: "Copy its name", action: () => copyText(name) },
    { label: "Copy a link to what is seen", action: () => copyText(linkHere()) },
  ];
}

function Menu({ x, y, at, func }: { x: number; y: number; at: Selected; func: number }) {
  const box = useRef<HTMLDivElement>(null);
  const name = store.state.traces[at.trace]!.info.functions[func]?.name ?? "?";
  const close = () => store.set({ menu: null });
  const items = () => [...box.current!.querySelectorAll("button")];
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    items()[0]?.focus();
    const away = (event: Event) => !box.current?.contains(event.target as Node) && close();
    for (const kind of ["pointerdown", "wheel"]) addEventListener(kind, away, true);
    return () => {
      for (const kind of ["pointerdown", "wheel"]) removeEventListener(kind, away, true);
      if (document.activeElement === document.body) before?.focus({ preventScroll: true });
    };
  }, []);
  useLayoutEffect(() => {
    // Inside of the window, whatever its size.
    const { style, offsetWidth, offsetHeight } = box.current!;
    style.left = `${Math.max(0, Math.min(x, innerWidth - offsetWidth - 4))}px`;
    style.top = `${Math.max(0, Math.min(y, innerHeight - offsetHeight - 4))}px`;
  }, [x, y]);
  const onKeyDown = (event: KeyboardEvent) => {
    const all = items();
    const now = all.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) all[to % all.length]!.focus();
    // Other keys do what they do without a menu.
    else if (!["Enter", " ", "Shift", "Control"].includes(event.key)) close();
    if (to === undefined && !["Escape", "Tab", "ContextMenu"].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class="menu"
      role="menu"
      aria-label={readable(name)}
      data-testid="menu"
      ref={box}
      onKeyDown={onKeyDown}
      onContextMenu={(event) => event.preventDefault()}
    >
      {entriesOf(at, func, name).map(({ label, key, action }) => (
        <button
          role="menuitem"
          tabIndex={-1}
          onClick={() => {
            close();
            action();
          }}
        >
          {label} {key && <kbd>{key}</kbd>}
        </button>
      ))}
    </div>
  );
}

export function CallMenu() {
  const menu = useStore((s) => s.menu);
  const selected = useStore((s) => s.selected);
  const span = useStore((s) => s.selectedSpan);
  return menu && selected && span && <Menu {...menu} at={selected} func={span.function} />;
}
