// SPDX-License-Identifier: MIT
// The timeline: the tracks' names beside a canvas, which FrameLoop draws.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "../model/colour";
import { onScrollTo } from "../model/actions";
import { wantLate } from "../model/late";
import { store, useStore } from "../model/store";
import type { Layout } from "../model/tracks";
import { FrameLoop, type Under } from "./frame_loop";
import { GapTip } from "./gap_tip";
import { Gutter } from "./gutter";
import { Legend } from "./legend";
import { attachInput } from "./input";
import { kindOf, LATE_LISTS } from "./kinds";
import { NoteTip } from "./note_tip";
import { PlotTip } from "./track_values";
import type { Pointer } from "./overlay";
import { RULER, type Scene } from "./scene";

function Tip({ pointer, area, ...under }: Under & { pointer: Pointer; area: { width: number; height: number } }) {
  // Beside the pointer, on the side that has room.
  const right = pointer.x > area.width * 0.55;
  const above = pointer.y > area.height * 0.55;
  const OfSlice = under.hit && kindOf(under.hit.info.kind)?.Tip;
  return (
    <div
      class="tip"
      role="tooltip"
      style={{
        left: right ? "auto" : `${pointer.x + 16}px`,
        right: right ? `${area.width - pointer.x + 12}px` : "auto",
        top: above ? "auto" : `${pointer.y + 18}px`,
        bottom: above ? `${area.height - pointer.y + 12}px` : "auto",
      }}
    >
      {"plot" in under ? (
        <PlotTip {...under.plot} />
      ) : under.gap ? (
        <GapTip {...under} />
      ) : under.note ? (
        <NoteTip {...under.note} />
      ) : (
        OfSlice && <OfSlice hit={under.hit} />
      )}
    </div>
  );
}

/** Brings a level of a track into sight. */
function scrollTo(scene: Scene, key: string, depth: number): void {
  const track = scene.layout().scrolled.find((t) => t.key === key);
  if (!track) return;
  const y = track.y + track.lead + depth * track.rowHeight;
  const room = scene.height - RULER - scene.pinnedShown;
  const now = scene.scrollNow();
  if (y >= now && y + track.rowHeight <= now + room) return;
  store.set({ scroll: Math.max(0, Math.min(scene.mostScroll, track.height < room ? track.y - 8 : y - room / 3)) });
}

export function Timeline({ theme }: { theme: Theme }) {
  const area = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  const [tip, setTip] = useState<(Under & { pointer: Pointer }) | undefined>();
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [busy, setBusy] = useState(false);
  const [, setLaidOut] = useState<Layout | undefined>();
  const choice = useStore((s) => s.choice);
  const scroll = useStore((s) => s.scroll);
  const traces = useStore((s) => s.traces);
  const late = useStore((s) => s.late);
  useEffect(() => wantLate(LATE_LISTS), [traces]);
  const view = useStore((s) => (s.choice.hideIdle ? s.view : null));

  const work = useMemo(
    () =>
      new FrameLoop(() => ({ base: base.current, above: above.current }), {
        tip: setTip,
        busy: setBusy,
        laidOut: setLaidOut,
      }),
    [],
  );

  useEffect(() => {
    const element = area.current!;
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = element;
      work.scene.width = width;
      work.scene.height = height;
      setSize({ width, height });
      work.schedule(true);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    const unsubscribe = store.subscribe(() => work.schedule(true));
    const detach = attachInput(element, work.scene, store, { pointer: (at) => work.setPointer(at) });
    onScrollTo((key, depth) => scrollTo(work.scene, key, depth));
    return () => {
      observer.disconnect();
      unsubscribe();
      detach();
    };
  }, []);

  work.scene.setTheme(theme);
  useEffect(() => work.schedule(true), [theme]);

  const layout = work.scene.layout();
  void choice;
  void traces;
  void late;
  void view;
  // The scrollbar is a plain one beside the canvas, so that it looks and works as everywhere.
  useEffect(() => {
    if (bar.current && Math.abs(bar.current.scrollTop - scroll) > 1) bar.current.scrollTop = scroll;
  }, [scroll, layout, size]);

  const room = size.height - RULER - work.scene.pinnedShown;
  return (
    <section class="timeline" aria-label="Timeline">
      <Gutter scene={work.scene} height={size.height} scroll={scroll} />
      <div
        class="canvas-area"
        ref={area}
        tabIndex={0}
        role="application"
        aria-roledescription="timeline"
        aria-label={
          "Timeline of calls. A and D move, W and S zoom, Enter selects, " +
          "Shift with arrows walks the call tree, question mark lists all keys."
        }
        data-testid="timeline"
      >
        <canvas ref={base} aria-hidden="true" />
        <canvas ref={above} class="above" aria-hidden="true" />
        <Legend />
        {tip && <Tip {...tip} area={size} />}
        {busy && (
          <div class="busy" role="status" aria-label="Loading">
            <span />
          </div>
        )}
        {layout.scrolled.length + layout.pinned.length === 0 && traces.length > 0 && (
          <div class="nothing">No track matches. Clear the filter above the track names, or show idle threads.</div>
        )}
      </div>
      <div
        class="scrollbar"
        ref={bar}
        tabIndex={-1}
        aria-hidden="true"
        style={{ top: `${RULER + work.scene.pinnedShown}px` }}
        onScroll={(event) => store.set({ scroll: event.currentTarget.scrollTop })}
      >
        <div style={{ height: `${Math.max(0, room + work.scene.mostScroll)}px` }} />
      </div>
    </section>
  );
}
