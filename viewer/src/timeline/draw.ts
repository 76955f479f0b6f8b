// One picture of the timeline: ruler, lanes, gaps, calls with their names. What follows the pointer is
// drawn above it by overlay.ts.
import { CPU_FUNCTION, CPU_THREAD, kOpenBegin, kSummed, STRIP_DEPTHS } from "../backend/types";
import type { State } from "../model/store";
import { duration, moment, step } from "../model/time";
import { STRIP } from "../model/tracks";
import { drawEnds } from "./endings_drawn";
import { drawGaps, drawMoments } from "./gaps";
import { RowPainter, type Label } from "./paint";
import { FONT, SMALL, type Band, type Renderer } from "./renderer";

import { RULER, stripOf, type Placed, type Scene } from "./scene";
import { drawUnread } from "./unread";
import { statePalette, type Looks } from "./theme";
import { BAND_LEVELS } from "./tile_store";

const MOST_LABELS = 2200;
const painters: RowPainter[] = [];

function painter(i: number, width: number): RowPainter {
  let p = painters[i];
  if (!p || p.width !== width) painters[i] = p = new RowPainter(width);
  p.start();
  return p;
}

interface PlacedLabel extends Label {
  trace: number;
  y: number;
  height: number;
  dim: boolean;
  /** What it is named by; left out: the trace's functions. */
  looks?: Looks;
}

export function ticks(state: State, width: number): { stepNs: number; at: number[] } {
  const stepNs = step((state.view.span / width) * 110);
  const at: number[] = [];
  const first = Math.ceil(state.view.begin / stepNs);
  for (let i = first; i * stepNs <= state.view.begin + state.view.span && at.length < 400; ++i) at.push(i * stepNs);
  return { stepNs, at };
}

export function drawRuler(r: Renderer, scene: Scene, state: State): void {
  const { inks } = scene;
  r.rect(0, 0, r.width, RULER, inks.ground);
  const { stepNs, at } = ticks(state, r.width);
  const x = (ns: number) => ((ns - state.view.begin) / state.view.span) * r.width;
  const small = stepNs / 5;
  if (small >= 1)
    for (let i = Math.ceil(state.view.begin / small); i * small <= state.view.begin + state.view.span; ++i)
      r.rect(Math.round(x(i * small)), RULER - 5, 1, 4, inks.rule);
  for (const ns of at) {
    const px = Math.round(x(ns));
    r.rect(px, RULER - 10, 1, 9, inks.quiet);
    const text = moment(ns, stepNs, at[at.length - 1]);
    if (px + 6 + r.textWidth(text) < r.width) r.text(text, px + 4, RULER / 2 - 2, inks.quiet, FONT);
  }
  r.rect(0, RULER - 1, r.width, 1, inks.rule);
}

/** Draws all; returns how many slices' rows were painted, for tests and measurements. */
export function drawFrame(r: Renderer, scene: Scene, state: State): number {
  const { inks } = scene;
  r.clear(inks.ground);
  const placed = scene.placed();
  const pinnedShown = scene.pinnedShown;
  const top = RULER + pinnedShown;
  let rows = 0;
  r.clip(top, r.height - top);
  rows += drawArea(
    r,
    scene,
    state,
    placed.filter((p) => !p.pinned),
  );
  r.unclip();
  if (pinnedShown > 0) {
    r.clip(RULER, pinnedShown);
    r.rect(0, RULER, r.width, pinnedShown, inks.ground);
    rows += drawArea(
      r,
      scene,
      state,
      placed.filter((p) => p.pinned),
    );
    r.unclip();
    r.rect(0, top - 2, r.width, 2, inks.quiet);
  }
  drawRuler(r, scene, state);
  return rows;
}

function drawArea(r: Renderer, scene: Scene, state: State, placed: readonly Placed[]): number {
  const { inks } = scene;
  const { view } = state;
  const deviceWidth = Math.max(1, Math.round(r.width * r.scale));
  const pixel = view.span / deviceWidth;
  const toX = (ns: number) => ((ns - view.begin) / view.span) * r.width;
  const bands: Band[] = [];
  const labels: PlacedLabel[] = [];
  let nextPainter = 0;
  for (const { track, top } of placed) {
    if (track.kind === "process" || track.kind === "cpus") {
      r.rect(0, top, r.width, track.height - 1, inks.heading);
      continue;
    }
    if (track.kind === "cpu") continue;
    const thread = state.traces[track.trace]!.info.threads[track.thread]!;
    const offset = scene.offset(track.trace);
    const from = Math.max(0, toX(thread.begin + offset));
    const to = Math.min(r.width, toX(thread.end + offset));
    if (to > from) r.rect(from, top, to - from, track.height - 1, inks.lane);
  }
  for (const ns of ticks(state, r.width).at) {
    const { top, track } = placed[placed.length - 1] ?? { top: RULER, track: { height: 0 } };
    const first = placed[0]?.top ?? RULER;
    r.rect(Math.round(toX(ns)), first, 1, top + track.height - first, inks.grid);
  }
  for (const place of placed) {
    const { track, top } = place;
    r.rect(0, top + track.height - 1, r.width, 1, inks.rule);
    const strip = stripOf(track);
    if (strip !== undefined) nextPainter = drawStrip(r, scene, state, place, strip, bands, labels, nextPainter);
    if (track.kind !== "thread") continue;
    drawGaps(r, scene, state, place);
    drawUnread(r, scene, state, place);
    const looks = scene.looks(track.trace)!;
    const tiles = scene.tiles(track.trace)!;
    const marked = scene.highlightTiles(track.trace);
    const palette = state.highlight ? looks.dimmed : looks.full;
    const offset = scene.offset(track.trace);
    const shifted = { begin: view.begin - offset, pixel };
    const levels = scene.levels(place);
    for (let band = Math.floor(levels.from / BAND_LEVELS); band * BAND_LEVELS < levels.to; ++band) {
      const need = { thread: track.thread, band };
      const cover = tiles.cover(need, shifted.begin, shifted.begin + view.span, pixel);
      const markedCover = marked?.cover(need, shifted.begin, shifted.begin + view.span, pixel) ?? [];
      const low = Math.max(levels.from, band * BAND_LEVELS);
      const high = Math.min(levels.to, (band + 1) * BAND_LEVELS);
      const used: (RowPainter | undefined)[] = [];
      const at = (depth: number) => (used[depth - low] ??= painter(nextPainter++, deviceWidth));
      const labelFrom = (track.folded ? 1e9 : 7) * r.scale;
      for (const part of cover) {
        for (const row of part.tile.rows) {
          if (row.depth < low || row.depth >= high) continue;
          const found: Label[] = [];
          const tile = { begin: part.tile.origin, pixelNs: part.tile.pixelNs, from: part.from, to: part.to };
          at(row.depth).add(row, palette, shifted, tile, found, labelFrom);
          const y = top + 2 + track.lead + row.depth * track.rowHeight;
          for (const label of found) {
            // The highlighted ones are drawn again, in full.
            if (marked && row.func[label.at] === marked.only) continue;
            labels.push({
              ...label,
              trace: track.trace,
              y,
              height: track.rowHeight - 1,
              dim: state.highlight !== null,
            });
          }
        }
      }
      for (const p of used) p?.finish(palette);
      for (const part of markedCover) {
        for (const row of part.tile.rows) {
          if (row.depth < low || row.depth >= high) continue;
          const tile = { begin: part.tile.origin, pixelNs: part.tile.pixelNs, from: part.from, to: part.to };
          const p = at(row.depth);
          const found: Label[] = [];
          p.overlay(row, looks.strong, shifted, tile, found, labelFrom);
          const y = top + 2 + track.lead + row.depth * track.rowHeight;
          for (const label of found)
            labels.push({ ...label, trace: track.trace, y, height: track.rowHeight - 1, dim: false });
        }
      }
      used.forEach((p, i) => {
        if (p)
          bands.push({
            y: top + 2 + track.lead + (low + i) * track.rowHeight,
            height: track.rowHeight - (track.folded ? 0 : 1),
            line: p.line,
          });
      });
    }
  }
  r.bands(bands);
  drawLabels(r, scene, state, labels);
  for (const place of placed) if (place.track.kind === "thread") drawMoments(r, scene, state, place);
  return bands.length;
}

/** Heights of the states' bands: told apart by more than colour. */
const STATE_HEIGHTS = [STRIP, 6, 3, STRIP];

/** A thread's states, or what ran on a CPU. Returns the next free painter. */
function drawStrip(
  r: Renderer,
  scene: Scene,
  state: State,
  { track, top }: Placed,
  strip: number,
  bands: Band[],
  labels: PlacedLabel[],
  nextPainter: number,
): number {
  const { view } = state;
  const width = Math.max(1, Math.round(r.width * r.scale));
  const pixel = view.span / width;
  const shifted = { begin: view.begin - scene.offset(track.trace), pixel };
  const cover = scene
    .tiles(track.trace)!
    .cover({ thread: strip, band: 0 }, shifted.begin, shifted.begin + view.span, pixel);
  const cpu = track.kind === "cpu";
  // Of a thread that was not born yet nothing is known because there is nothing.
  const born = cpu ? -Infinity : state.traces[track.trace]!.info.threads[track.thread]!.begin;
  if (cpu) drawCpuGaps(r, scene, state, track.trace, track.thread, top, track.height);
  const used: RowPainter[] = [];
  for (const { tile, from, to } of cover)
    for (const row of tile.rows) {
      if (row.depth > 3) continue;
      const looks = !cpu
        ? undefined
        : row.depth === CPU_THREAD
          ? scene.taskLooks(track.trace)!
          : scene.looks(track.trace)!;
      const p = (used[row.depth] ??= painter(nextPainter++, width));
      const found: Label[] = [];
      const palette = looks?.full ?? statePalette(scene.inks, row.depth);
      const least = STRIP_DEPTHS[row.depth] === "unknown" ? Math.max(from, born) : from;
      p.add(row, palette, shifted, { begin: tile.origin, pixelNs: tile.pixelNs, from: least, to }, found, 12 * r.scale);
      const y = top + 2 + row.depth * track.rowHeight;
      if (looks)
        for (const label of found)
          labels.push({ ...label, trace: track.trace, y, height: track.rowHeight - 1, dim: false, looks });
    }
  used.forEach((p, depth) => {
    if (cpu) {
      p.finish((depth === CPU_FUNCTION ? scene.looks(track.trace)! : scene.taskLooks(track.trace)!).full);
      bands.push({ y: top + 2 + depth * track.rowHeight, height: track.rowHeight - 1, line: p.line });
      return;
    }
    p.finish(statePalette(scene.inks, depth));
    const height = STATE_HEIGHTS[depth]!;
    bands.push({ y: top + 2 + STRIP - height, height, line: p.line });
  });
  return nextPainter;
}

/** Where records of a CPU are missing nothing is said of it. */
function drawCpuGaps(
  r: Renderer,
  scene: Scene,
  state: State,
  trace: number,
  cpu: number,
  top: number,
  height: number,
): void {
  const { view } = state;
  const offset = scene.offset(trace);
  for (const gap of state.traces[trace]!.info.cpus[cpu]?.gaps ?? []) {
    const x0 = Math.max(-2, ((gap.begin + offset - view.begin) / view.span) * r.width);
    const x1 = Math.min(r.width + 2, ((gap.end + offset - view.begin) / view.span) * r.width);
    if (x1 < 0 || x0 > r.width) continue;
    r.rect(x0, top, Math.max(1, x1 - x0), height - 1, scene.inks.gapGround);
    r.hatch(x0, top, Math.max(1, x1 - x0), height - 1, scene.inks.lost, "crossed");
  }
}

function drawLabels(r: Renderer, scene: Scene, state: State, labels: readonly PlacedLabel[]): void {
  const least = labels.length > MOST_LABELS ? 60 : 24;
  const lastIndex = new Map<number, string>();
  for (const label of labels) {
    const { row, at, y, height } = label;
    const looks = label.looks ?? scene.looks(label.trace)!;
    const from = label.from / r.scale;
    const to = label.to / r.scale;
    // A call that reaches over a tile's border is in both tiles.
    const key = `${label.trace}.${row.index[at]!}.${label.from}.${label.dim}`;
    if (lastIndex.get(y) === key) continue;
    lastIndex.set(y, key);
    const flags = row.flags[at]! & ~kSummed;
    if (flags !== 0) drawEnds(r, scene, from, to, y, height, flags);
    // What ran on a CPU may have begun before the trace, where nothing is drawn.
    const start = ((scene.offset(label.trace) - state.view.begin) / state.view.span) * r.width;
    const left = Math.max(from, 0, start) + (flags & kOpenBegin && from >= 0 ? 9 : 4);
    const right = Math.min(to, r.width) - (flags & ~kOpenBegin && to <= r.width ? 12 : 4);
    const room = right - left;
    if (to - from < least || room < 14) continue;
    const { inks } = scene;
    const middle = y + height / 2 + 0.5;
    const text = fitted(r, looks.forms(row.func[at]!), room);
    if (text === "") continue;
    const strong = state.highlight !== null && !label.dim && label.looks === undefined;
    r.text(text, left, middle, label.dim ? inks.quiet : strong ? inks.onStrong : inks.onCall, FONT);
    if (label.dim || room < 110) continue;
    const time = duration(row.duration[at]!);
    const timeWidth = r.textWidth(time, SMALL);
    if (room > r.textWidth(text) + timeWidth + 14)
      r.text(time, right - timeWidth, middle, strong ? inks.onStrong : inks.onCallQuiet, SMALL);
  }
}

/** The longest form that fits; else the shortest, cut; else nothing. Never wider than `room`. */
export function fitted(r: Pick<Renderer, "textWidth">, forms: readonly string[], room: number): string {
  for (const form of forms) {
    // Names of thousands of characters are not worth measuring.
    if (form.length < room && r.textWidth(form) <= room) return form;
  }
  const shortest = forms[forms.length - 1]!;
  let n = Math.min(shortest.length - 1, Math.floor(room / 6));
  while (n > 1 && r.textWidth(`${shortest.slice(0, n)}…`) > room) --n;
  return n > 1 ? `${shortest.slice(0, n)}…` : "";
}
