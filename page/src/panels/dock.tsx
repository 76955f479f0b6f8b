// The lower half: one panel at a time, as high as its edge is dragged to.
import { store, useStore, type Tab } from "../model/store";
import { CallPanel } from "./call";
import { ComparePanel } from "./compare";
import { FramePanel } from "./frames";
import { FlamePanel } from "./flame";
import { Icon } from "./icon";
import { OutlierPanel } from "./outliers";
import { NotePanel } from "./notes";
import { RangePanel } from "./range";
import { RequestPanel } from "./requests";
import { TablePanel } from "./table";

const TABS: readonly { id: Tab; label: string }[] = [
  { id: "call", label: "Call" },
  { id: "functions", label: "Functions" },
  { id: "flame", label: "Flame graph" },
  { id: "range", label: "Range" },
  { id: "compare", label: "Compare" },
  { id: "outliers", label: "Outliers" },
  { id: "requests", label: "Requests" },
  { id: "notes", label: "Notes" },
  { id: "frames", label: "Frames" },
];

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
  const height = useStore((s) => s.dockHeight);
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
              title={`${label} (${i + 1})`}
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
          {tab === "call" && <CallPanel />}
          {tab === "functions" && <TablePanel />}
          {tab === "flame" && <FlamePanel />}
          {tab === "range" && <RangePanel />}
          {tab === "compare" && <ComparePanel />}
          {tab === "outliers" && <OutlierPanel />}
          {tab === "requests" && <RequestPanel />}
          {tab === "notes" && <NotePanel />}
          {tab === "frames" && <FramePanel />}
        </div>
      )}
    </section>
  );
}
