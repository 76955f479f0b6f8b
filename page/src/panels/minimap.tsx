// SPDX-License-Identifier: MIT
// The whole trace in a strip: how busy the threads are over time, and the window that the timeline shows.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { moveTo, setView } from "../model/actions";
import type { Theme } from "../model/colour";
import { Fold, overwritten } from "../model/fold";
import { readingWords } from "../model/reading";
import { store, useStore, type LoadedTrace } from "../model/store";
import { DARK, LIGHT } from "../timeline/theme";

const HEIGHT = 36;
const PIXELS = 1024;
/** Where folds make room for what is short. */
const MORE_PIXELS = 8192;

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

/** Of one trace: shares by thread and pixel, one list for each band, which stand on one another. */
type Bands = readonly { readonly colour: string; readonly threads: readonly Uint8Array[] }[];

const rgb = ({ r, g, b }: { r: number; g: number; b: number }) => `rgb(${r} ${g} ${b})`;

/** With thread states: who ran, who waited for a CPU, who was blocked. Else whose calls were open. */
async function bandsOf({ backend, info }: LoadedTrace, pixels: number): Promise<readonly Uint8Array[][]> {
  if (!info.states || info.aggregated) return [await backend.minimap(pixels)];
  const states = ["cpu", "runnable", "blocked"] as const;
  return await Promise.all(states.map((of) => backend.minimap(pixels, of)));
}

function sumOf(threads: readonly Uint8Array[]): Float64Array {
  const sum = new Float64Array(threads[0]?.length ?? 0);
  for (const line of threads) for (let i = 0; i < line.length; ++i) sum[i]! += line[i]! / 255;
  return sum;
}

/** Threads at once, as a share of the most there are at any time; one trace above the other. */
function draw(canvas: HTMLCanvasElement, width: number, traces: readonly Bands[], fold: Fold, theme: Theme): void {
  const c = canvas.getContext("2d");
  if (!c) return;
  const { traces: loaded, offset } = store.state;
  const scale = window.devicePixelRatio || 1;
  const w = Math.round(width * scale);
  const h = Math.round(HEIGHT * scale);
  canvas.width = w;
  canvas.height = h;
  const share = traces.length > 1 ? h / 2 : h;
  traces.forEach((bands, t) => {
    const span = loaded[t]?.info.span ?? 1;
    const move = t === 1 ? offset : 0;
    const sums = bands.map(({ threads }) => sumOf(threads));
    const pixels = sums[0]?.length ?? 0;
    const all = new Float64Array(pixels);
    for (const sum of sums) sum.forEach((n, i) => (all[i]! += n));
    const most = all.reduce((a, b) => Math.max(a, b), 0) || 1;
    for (let x = 0; x < w; ++x) {
      const at = (of: number) => Math.floor(((fold.toNs(of / scale) - move) / span) * pixels);
      const from = Math.max(0, at(x));
      const to = Math.min(pixels, Math.max(from + 1, at(x + 1)));
      let bottom = share * (t + 1);
      sums.forEach((sum, band) => {
        let high = 0;
        for (let i = from; i < to; ++i) high = Math.max(high, sum[i]!);
        if (high === 0) return;
        const up = Math.max(1, Math.min((high / most) * (share - 4 * scale), bottom - share * t - 2 * scale));
        c.fillStyle = bands[band]!.colour;
        c.fillRect(x, bottom - up, 1, up);
        bottom -= up;
      });
    }
  });
  for (const { begin, end } of fold.folded)
    drawFold(c, fold.toX(begin) * scale, fold.toX(end) * scale, h, scale, theme);
}

/** Lines that rise, as the timeline has them where history was overwritten. */
function drawFold(c: CanvasRenderingContext2D, x0: number, x1: number, h: number, scale: number, theme: Theme): void {
  const inks = theme === "dark" ? DARK : LIGHT;
  c.save();
  c.beginPath();
  c.rect(x0, 0, x1 - x0, h);
  c.clip();
  c.fillStyle = inks.gapGround;
  c.fillRect(x0, 0, x1 - x0, h);
  c.strokeStyle = inks.gapLine;
  c.lineWidth = scale;
  c.beginPath();
  for (let x = x0 - h; x < x1; x += 7 * scale) {
    c.moveTo(x, h);
    c.lineTo(x + h, 0);
  }
  c.stroke();
  c.restore();
}

/** Colours of bandsOf(). What waits is paler than what runs. */
function withColours(lines: readonly Uint8Array[][], theme: Theme): Bands {
  const inks = theme === "dark" ? DARK : LIGHT;
  const pale = (colour: string) => colour.replace(")", " / 0.4)");
  const colours =
    lines.length === 1
      ? [theme === "dark" ? "rgb(138 180 248 / 0.62)" : "rgb(11 87 208 / 0.62)"]
      : [rgb(inks.states[0]!), rgb(inks.states[1]!), pale(rgb(inks.states[2]!))];
  return lines.map((threads, i) => ({ threads, colour: colours[i]! }));
}

/** Moves the window, or one of its edges, or chooses another one; a click brings it there. `left` and `right`: where it is. */
function drag(
  event: PointerEvent,
  element: HTMLElement,
  width: number,
  left: number,
  right: number,
  { toNs }: Fold,
): void {
  if (event.button !== 0) return;
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
    const at = toNs(now);
    if (edge === "left")
      setView({ begin: Math.min(at, from.begin + from.span - 20), span: from.begin + from.span - at });
    else if (edge === "right") setView({ begin: from.begin, span: Math.max(20, at - from.begin) });
    else if (inside) setView({ begin: from.begin + at - toNs(start), span: from.span });
    else setView({ begin: Math.min(toNs(start), at), span: Math.abs(at - toNs(start)) });
  };
  const end = () => {
    controller.abort();
    if (!moved) moveTo({ begin: toNs(start) - from.span / 2, span: from.span });
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
  const [lines, setLines] = useState<(readonly Uint8Array[][])[]>([]);
  const [width, setWidth] = useState(0);
  const total = store.total;
  const reading = traces.some((t) => t.info.reading);
  const folded = useMemo(() => overwritten(traces, offset, total), [traces, offset, total]);
  const fold = useMemo(() => new Fold(folded, total, width), [folded, total, width]);

  useEffect(() => {
    let dropped = false;
    // Threads that are not read yet would look idle.
    if (reading) return;
    const pixels = folded.length > 0 ? MORE_PIXELS : PIXELS;
    Promise.all(traces.map((trace) => bandsOf(trace, pixels))).then(
      (all) => !dropped && setLines(all),
      (error: Error) => !dropped && store.set({ notice: error.message }),
    );
    return () => {
      dropped = true;
    };
  }, [traces, folded.length > 0]);
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (canvas.current && width > 0)
      draw(
        canvas.current,
        width,
        lines.map((of) => withColours(of, theme)),
        fold,
        theme,
      );
  }, [lines, width, theme, offset, fold]);

  const px = fold.toX;
  const left = Math.max(0, px(view.begin));
  const right = Math.min(width, px(view.begin + view.span));
  return (
    <div
      class="minimap"
      ref={box}
      onPointerDown={(event) => drag(event, box.current!, width, left, right, fold)}
      role={reading ? "group" : "img"}
      aria-label={
        reading
          ? "The trace is still being read"
          : `The whole trace: what its threads did. Drag to choose what the timeline shows.${
              folded.length > 0 ? " What was overwritten is folded." : ""
            }`
      }
      data-folds={folded.length}
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
