// The whole trace in a strip: how busy the threads are over time, and the window that the timeline shows.
import { useEffect, useRef, useState } from "preact/hooks";
import { moveTo, setView } from "../model/actions";
import type { Theme } from "../model/colour";
import { readingWords } from "../model/reading";
import { store, useStore } from "../model/store";
import { DARK, LIGHT } from "../timeline/theme";

const HEIGHT = 36;
const PIXELS = 1024;

/** In its place while the trace is being read. */
function Reading() {
  const share = useStore((s) => s.readShare);
  const info = useStore((s) => s.traces[0]?.info);
  if (!info) return null;
  return (
    <div class="minimap-reading" data-testid="reading">
      <progress max={1} value={share} aria-label="Reading the trace" />
      <span>{readingWords(info, share)}</span>
    </div>
  );
}

/** Busy threads at once, as a share of the most there are at any time; one trace above the other. */
function draw(canvas: HTMLCanvasElement, width: number, theme: Theme, lines: readonly Uint8Array[][]): void {
  const c = canvas.getContext("2d");
  if (!c) return;
  const { traces, offset } = store.state;
  const { total } = store;
  const scale = window.devicePixelRatio || 1;
  const w = Math.round(width * scale);
  const h = Math.round(HEIGHT * scale);
  canvas.width = w;
  canvas.height = h;
  const inks = theme === "dark" ? DARK : LIGHT;
  const share = lines.length > 1 ? h / 2 : h;
  lines.forEach((threads, t) => {
    const span = traces[t]?.info.span ?? 1;
    const move = t === 1 ? offset : 0;
    const sum = new Float64Array(PIXELS);
    for (const line of threads) for (let i = 0; i < line.length && i < PIXELS; ++i) sum[i]! += line[i]! / 255;
    const most = sum.reduce((a, b) => Math.max(a, b), 0) || 1;
    c.fillStyle = inks.accent;
    for (let x = 0; x < w; ++x) {
      const from = Math.floor((((x / w) * total - move) / span) * PIXELS);
      const to = Math.max(from + 1, Math.floor(((((x + 1) / w) * total - move) / span) * PIXELS));
      let high = 0;
      for (let i = Math.max(0, from); i < to && i < PIXELS; ++i) high = Math.max(high, sum[i]!);
      if (high === 0) continue;
      c.globalAlpha = 0.62;
      const up = Math.max(1, (high / most) * (share - 4 * scale));
      c.fillRect(x, share * (t + 1) - up, 1, up);
    }
  });
  c.globalAlpha = 1;
}

/** Moves the window, or one of its edges, or chooses another one; a click brings it there. `left` and `right`: where it is. */
function drag(event: PointerEvent, element: HTMLElement, width: number, left: number, right: number): void {
  if (event.button !== 0) return;
  const { total } = store;
  const x = (e: PointerEvent) => e.clientX - element.getBoundingClientRect().left;
  const start = x(event);
  const inside = start >= left - 4 && start <= right + 4 && right - left < width * 0.98;
  const edge =
    inside && Math.abs(start - left) <= 5 ? "left" : inside && Math.abs(start - right) <= 5 ? "right" : undefined;
  const from = store.state.view;
  element.setPointerCapture(event.pointerId);
  const controller = new AbortController();
  const { signal } = controller;
  let moved = false;
  const move = (e: PointerEvent) => {
    const now = x(e);
    moved ||= Math.abs(now - start) > 3;
    if (!moved) return;
    const at = (now / width) * total;
    if (edge === "left")
      setView({ begin: Math.min(at, from.begin + from.span - 20), span: from.begin + from.span - at });
    else if (edge === "right") setView({ begin: from.begin, span: Math.max(20, at - from.begin) });
    else if (inside) setView({ begin: from.begin + ((now - start) / width) * total, span: from.span });
    else setView({ begin: (Math.min(start, now) / width) * total, span: (Math.abs(now - start) / width) * total });
  };
  const end = () => {
    controller.abort();
    if (!moved) moveTo({ begin: (start / width) * total - from.span / 2, span: from.span });
  };
  element.addEventListener("pointermove", move, { signal });
  element.addEventListener("pointerup", end, { signal });
  element.addEventListener("pointercancel", () => controller.abort(), { signal });
}

export function Minimap({ theme }: { theme: Theme }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const traces = useStore((s) => s.traces);
  const offset = useStore((s) => s.offset);
  const view = useStore((s) => s.view);
  const range = useStore((s) => s.range);
  const [lines, setLines] = useState<Uint8Array[][]>([]);
  const [width, setWidth] = useState(0);
  const total = store.total;
  const reading = traces.some((t) => t.info.reading);

  useEffect(() => {
    let dropped = false;
    // Threads that are not read yet would look idle.
    if (reading) return;
    Promise.all(traces.map((t) => t.backend.minimap(PIXELS))).then(
      (all) => !dropped && setLines(all),
      (error: Error) => !dropped && store.set({ notice: error.message }),
    );
    return () => {
      dropped = true;
    };
  }, [traces]);
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, width, theme, lines);
  }, [lines, width, theme, offset, total]);

  const px = (ns: number) => (ns / total) * width;
  const left = Math.max(0, px(view.begin));
  const right = Math.min(width, px(view.begin + view.span));
  return (
    <div
      class="minimap"
      ref={box}
      onPointerDown={(event) => drag(event, box.current!, width, left, right)}
      role={reading ? "group" : "img"}
      aria-label={
        reading
          ? "The trace is still being read"
          : "The whole trace: how busy its threads are. Drag to choose what the timeline shows."
      }
      style={{ height: `${HEIGHT}px` }}
    >
      {reading && <Reading />}
      <canvas ref={canvas} style={{ width: `${width}px`, height: `${HEIGHT}px` }} />
      {range && (
        <span
          class="minimap-range"
          style={{ left: `${px(range.begin)}px`, width: `${Math.max(1, px(range.end) - px(range.begin))}px` }}
        />
      )}
      <span class="minimap-shade" style={{ left: 0, width: `${left}px` }} />
      <span class="minimap-shade" style={{ left: `${right}px`, right: 0 }} />
      <span
        class="minimap-window"
        style={{ left: `${Math.min(left, width - 3)}px`, width: `${Math.max(3, right - left)}px` }}
      />
    </div>
  );
}
