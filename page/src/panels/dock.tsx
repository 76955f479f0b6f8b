// SPDX-License-Identifier: MIT
// The lower half: one panel at a time, as high as its edge is dragged to.
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { store, useStore } from "../model/store";
import { TABS, type OwnTab } from "../model/tabs";
import { panelOf } from "../timeline/kinds";
import { CallPanel } from "./call";
import { CheckPanel } from "./check";
import { ComparePanel } from "./compare";
import { FlamePanel } from "./flame";
import { Icon } from "./icon";
import { OutlierPanel } from "./outliers";
import { NotePanel } from "./notes";
import { QueryPanel } from "./query";
import { RangePanel } from "./range";
import { TablePanel } from "./table";

const PANELS: Readonly<Record<OwnTab, ComponentType>> = {
  call: CallPanel,
  functions: TablePanel,
  flame: FlamePanel,
  range: RangePanel,
  compare: ComparePanel,
  outliers: OutlierPanel,
  notes: NotePanel,
  check: CheckPanel,
  query: QueryPanel,
};

const clamp = (height: number) => Math.round(Math.min(Math.max(height, 120), window.innerHeight - 220));

function Divider() {
  const height = useStore((s) => s.dockHeight);
  const start = (event: PointerEvent) => {
    const element = event.currentTarget as HTMLElement;
    element.setPointerCapture(event.pointerId);
    const from = event.clientY;
    const before = store.state.dockHeight;
    const move = (e: PointerEvent) => store.set({ dockHeight: clamp(before + from - e.clientY) });
    element.addEventListener("pointermove", move);
    const end = () => element.removeEventListener("pointermove", move);
    element.addEventListener("pointerup", end, { once: true });
    element.addEventListener("pointercancel", end, { once: true });
  };
  return (
    <div
      class="divider"
      role="separator"
      aria-orientation="horizontal"
      aria-label="Height of the lower half"
      aria-valuenow={height}
      aria-valuemin={120}
      tabIndex={0}
      onPointerDown={start}
      onKeyDown={(event) => {
        const by = { ArrowUp: 24, ArrowDown: -24 }[event.key];
        if (by === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        store.set({ dockHeight: clamp(height + by) });
      }}
    />
  );
}

export function Dock() {
  const tab = useStore((s) => s.tab);
  const open = useStore((s) => s.dockOpen);
  const Panel = panelOf(tab) ?? PANELS[tab as OwnTab];
  const height = useStore((s) => s.dockHeight);
  // Where there is no room for all of them.
  useEffect(
    () => document.getElementById(`tab-${tab}`)?.scrollIntoView({ block: "nearest", inline: "nearest" }),
    [tab],
  );
  const choose = (by: number) => {
    const at = TABS.findIndex((t) => t.id === tab);
    const next = TABS[(at + by + TABS.length) % TABS.length]!.id;
    store.set({ tab: next });
    requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus());
  };
  return (
    <section class={`dock${open ? "" : " closed"}`} style={open ? { height: `${height}px` } : {}} aria-label="Details">
      {open && <Divider />}
      <div class="tabs">
        <div
          class="tablist"
          role="tablist"
          aria-label="Details"
          onKeyDown={(event) => {
            const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (by === undefined) return;
            event.preventDefault();
            event.stopPropagation();
            choose(by);
          }}
        >
          {TABS.map(({ id, label }, i) => (
            <button
              id={`tab-${id}`}
              role="tab"
              aria-selected={open && tab === id}
              {...(open ? { "aria-controls": "panel" } : {})}
              tabIndex={tab === id ? 0 : -1}
              title={i < 9 ? `${label} (${i + 1})` : label}
              onClick={() => store.set({ tab: id, dockOpen: true })}
            >
              {label}
            </button>
          ))}
        </div>
        <span class="grow" />
        <button
          class="icon"
          aria-label={open ? "Hide the lower half" : "Show the lower half"}
          title={open ? "Hide (b)" : "Show (b)"}
          aria-expanded={open}
          onClick={() => store.set({ dockOpen: !open })}
        >
          <Icon name={open ? "down" : "up"} />
        </button>
      </div>
      {open && (
        <div id="panel" class="panel" role="tabpanel" aria-labelledby={`tab-${tab}`}>
          <Panel />
        </div>
      )}
    </section>
  );
}
