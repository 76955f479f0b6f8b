// The timeline: the tracks' names beside a canvas. Draws on the next frame after anything changed, and
// only then.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "../model/colour";
import { onScrollTo } from "../model/actions";
import { firstPictureDrawn } from "../model/first_picture";
import { store, useStore } from "../model/store";
import { drawFrame } from "./draw";
import { GapTip } from "./gap_tip";
import { gapAt, type GapHit } from "./gaps";
import { Gutter } from "./gutter";
import { attachInput } from "./input";
import { kindOf } from "./kinds";
import { drawOverlay, type Pointer } from "./overlay";
import { CanvasRenderer } from "./renderer";
import { RULER, Scene } from "./scene";
import { setScene } from "./steps";
import type { SliceHit } from "./track_renderer";

/** Frames drawn, their times, and whether all that is needed is there: read by tests and measurements. */
export interface FrameLog {
  frames: number;
  milliseconds: number[];
  complete: boolean;
  /** Rows with calls or states in the last picture. */
  rows: number;
  /** Whether the trace is read to its end. */
  whole: boolean;
}
declare global {
  interface Window {
    karstFrames?: FrameLog;
  }
}

type Under = { hit: SliceHit; gap?: undefined } | { gap: GapHit; trace: number; thread: number; hit?: undefined };

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
      {under.gap ? <GapTip {...under} /> : OfSlice && <OfSlice hit={under.hit} />}
    </div>
  );
}

export function Timeline({ theme }: { theme: Theme }) {
  const area = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const bar = useRef<HTMLDivElement>(null);
  const [tip, setTip] = useState<(Under & { pointer: Pointer }) | undefined>();
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [busy, setBusy] = useState(false);
  const choice = useStore((s) => s.choice);
  const scroll = useStore((s) => s.scroll);
  const traces = useStore((s) => s.traces);
  const view = useStore((s) => (s.choice.hideIdle ? s.view : null));

  const work = useMemo(() => {
    let scheduled = 0;
    let stale = true;
    let pointer: Pointer | undefined;
    let renderer: CanvasRenderer | undefined;
    const log: FrameLog = (window.karstFrames = {
      frames: 0,
      milliseconds: [],
      complete: false,
      rows: 0,
      whole: false,
    });
    const scene = new Scene(store, () => schedule(true));
    setScene(scene);

    const frame = () => {
      scheduled = 0;
      const context = above.current?.getContext("2d");
      if (!base.current || !context || scene.width === 0) return;
      const started = performance.now();
      renderer ??= new CanvasRenderer(base.current);
      const scale = window.devicePixelRatio || 1;
      scene.scale = scale;
      renderer.resize(scene.width, scene.height, scale);
      if (stale) {
        stale = false;
        scene.want();
        log.rows = drawFrame(renderer, scene, store.state);
      }
      const canvas = above.current!;
      const w = Math.round(scene.width * scale);
      const h = Math.round(scene.height * scale);
      if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
        canvas.style.width = `${scene.width}px`;
        canvas.style.height = `${scene.height}px`;
      }
      context.setTransform(scale, 0, 0, scale, 0, 0);
      const hit = pointer && scene.hit(pointer.x, pointer.y);
      drawOverlay(context, scene, store.state, hit, pointer);
      const slice = hit ?? (pointer && scene.sliceHit(pointer.x, pointer.y));
      const gap = pointer && !slice ? gapAt(scene, store.state, pointer.x, pointer.y) : undefined;
      const track = gap && scene.trackAt(pointer!.y)!.track;
      if (!pointer) setTip(undefined);
      else if (slice) setTip({ hit: slice, pointer });
      else setTip(gap && track ? { gap, trace: track.trace, thread: track.thread, pointer } : undefined);
      setBusy(!scene.complete);
      log.frames++;
      log.complete = scene.complete;
      log.whole = store.state.traces.every((trace) => !trace.info.reading);
      if (log.complete) firstPictureDrawn();
      log.milliseconds.push(performance.now() - started);
      if (log.milliseconds.length > 4000) log.milliseconds.splice(0, 2000);
    };
    const schedule = (all: boolean) => {
      stale ||= all;
      log.complete = false;
      if (scheduled === 0) scheduled = requestAnimationFrame(frame);
    };
    return {
      scene,
      schedule,
      setPointer(at: Pointer | undefined) {
        pointer = at;
        schedule(false);
      },
      /** A new canvas element needs a new context. */
      reset() {
        renderer = undefined;
      },
    };
  }, []);

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
    onScrollTo((key, depth) => {
      const { scene } = work;
      const layout = scene.layout();
      const track = layout.scrolled.find((t) => t.key === key);
      if (!track) return;
      const y = track.y + track.lead + depth * track.rowHeight;
      const room = scene.height - RULER - scene.pinnedShown;
      const now = scene.scrollNow();
      if (y < now || y + track.rowHeight > now + room)
        store.set({
          scroll: Math.max(0, Math.min(scene.mostScroll, track.height < room ? track.y - 8 : y - room / 3)),
        });
    });
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
        aria-label="Timeline of calls. A and D move, W and S zoom, Enter selects, Shift with arrows walks the call tree, question mark lists all keys."
        data-testid="timeline"
      >
        <canvas ref={base} aria-hidden="true" />
        <canvas ref={above} class="above" aria-hidden="true" />
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
