// SPDX-License-Identifier: MIT
// Values as plots: a track below the threads for each name, in which a line steps from one value to the next. Where
// several share a pixel, it is as high as they are apart.
import type { Backend } from "../backend/types/backend";
import { css, inkColour } from "../model/colour";
import type { PlotInfo, PlotPart } from "../backend/types/notes";
import type { TraceInfo, TrackInfo } from "../backend/types/trace";
import { PLOTS } from "../backend/late_lists";
import { lateOf } from "../model/late";
import { visible } from "../model/names";
import type { State } from "../model/store";
import { SMALL, type Renderer } from "./renderer";
import type { Placed, Scene } from "./scene";
import { bucketOf, ViewAnswer, type Buckets } from "./view_answer";

/** Behind all numbers that the server gives tracks. */
const IDS = 1 << 30;
const ROWS = 2; // of calls: a plot is as high
const AIR = 4;

export interface PlotHit {
  readonly plot: PlotInfo;
  /** On the timeline. */
  readonly time: number;
  /** The value from the last change on; undefined: there was none yet. */
  readonly now: number | undefined;
  /** Several values share the pixel. */
  readonly several?: { readonly count: number; readonly min: number; readonly max: number };
}

/** A number as short as it is told apart from others of its size. */
export function plotNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  return String(Number(value.toPrecision(5)));
}

/** With the unit that the program says it has. */
export function withUnit(value: number, { unit }: PlotInfo): string {
  return unit === undefined ? plotNumber(value) : `${plotNumber(value)} ${visible(unit)}`;
}

/** Kinds of tracks that are plots. */
export const isPlot = (kind: string | undefined): boolean => kind === "value" || kind === "usage";

/** A trace's facts with a track for each plot of a kind. */
export function withPlots(info: TraceInfo, plots: readonly PlotInfo[], kind: "value" | "usage" = "value"): TraceInfo {
  const several = info.processes.length > 1;
  const tracks = plots.flatMap(({ name, process, usage }, owner): TrackInfo[] => {
    if ((usage !== undefined) !== (kind === "usage")) return [];
    const whose = info.processes[process];
    const said = several && usage !== "machine" ? ` · ${whose?.name ?? "?"} ${whose?.pid ?? ""}` : "";
    return [{ id: IDS + owner, kind, name: `${visible(name)}${said}`, owner, lanes: ROWS }];
  });
  return tracks.length === 0 ? info : { ...info, tracks: [...info.tracks, ...tracks] };
}

/** How a backend is asked. */
function asking(backend: Backend) {
  return async ({ begin, end }: Buckets, width: number, plots: readonly number[], signal: AbortSignal) =>
    new Map((await backend.plotParts({ begin, end }, width, plots, signal)).map((part) => [part.plot, part]));
}

/** Plots of one trace, by their places in its list. */
export class PlotStore {
  private readonly answer: ViewAnswer<ReadonlyMap<number, PlotPart>>;

  constructor(backend: Backend, info: TraceInfo, onChange: () => void) {
    this.answer = new ViewAnswer(info.extent, asking(backend), onChange);
  }

  /** A later reading of the trace answers from now on. */
  renew(backend: Backend, info: TraceInfo): void {
    this.answer.renew(info.extent, asking(backend));
  }

  get complete(): boolean {
    return this.answer.complete;
  }

  of(plot: number): (Buckets & { readonly part: PlotPart }) | undefined {
    const { kept } = this.answer;
    const part = kept?.value.get(plot);
    return kept && part && { begin: kept.begin, end: kept.end, bucketNs: kept.bucketNs, part };
  }

  want(begin: number, end: number, pixelNs: number, plots: readonly number[]): void {
    this.answer.want(begin, end, bucketOf(pixelNs, 1), plots);
  }
}

/** How high a value lies in a placed track. */
function heights({ track, top }: Placed, { min, max }: PlotInfo): (value: number) => number {
  const low = top + track.height - AIR;
  const room = track.height - 2 * AIR - 1;
  return (value) => (max > min ? low - ((value - min) / (max - min)) * room : low - room / 2);
}

export function drawPlot(r: Renderer, scene: Scene, state: State, place: Placed, owner: number): void {
  const { track } = place;
  const { inks } = scene;
  const plot = lateOf(PLOTS, track.trace, state)?.[owner];
  const found = scene.plots(track.trace)?.of(owner);
  if (!plot || !found) return;
  const { part, bucketNs, begin: from, end } = found;
  const { begin, span } = state.view;
  const offset = scene.offset(track.trace);
  const x = (ns: number) => ((ns + offset - begin) / span) * r.width;
  const y = heights(place, plot);
  const ink = plot.colour === undefined ? inks.plot : css(inkColour(plot.colour, inks.theme));
  const step = (x0: number, x1: number, value: number) => {
    const left = Math.max(x0, -2);
    const right = Math.min(x1, r.width + 2);
    if (right > left) r.rect(left, y(value) - 1, right - left, 2, ink);
  };
  // From value to value, if that is how the program wants it drawn: a band of the height of a step.
  const line = (x0: number, x1: number, from: number, to: number) => {
    if (x1 < -2 || x0 > r.width + 2) return;
    const [a, b] = [y(from), y(to)];
    r.polygon([x0, a - 1, x1, b - 1, x1, b + 1, x0, a + 1], ink);
  };
  let value = part.before;
  let at = x(from);
  for (let i = 0; i < part.at.length; ++i) {
    const next = x(from + part.at[i]! * bucketNs);
    if (value !== null && plot.line && part.count[i] === 1) line(at, next, value, part.last[i]!);
    else if (value !== null) step(at, next, value);
    const before = plot.line && part.count[i] === 1 ? null : value;
    const high = Math.max(part.max[i]!, before ?? part.max[i]!);
    const low = Math.min(part.min[i]!, before ?? part.min[i]!);
    if (next > -2 && next < r.width + 2) r.rect(next, y(high) - 1, 1.5, y(low) - y(high) + 2, ink);
    value = part.last[i]!;
    at = next;
  }
  const behind = Math.min(end, state.traces[track.trace]!.info.span);
  if (value !== null) step(at, x(behind), value);
  for (const [text, middle] of [
    [withUnit(plot.max, plot), place.top + 8],
    [withUnit(plot.min, plot), place.top + track.height - 9],
  ] as const) {
    if (plot.max === plot.min && middle > place.top + 8) continue;
    r.rect(2, middle - 6, r.textWidth(text, SMALL) + 4, 12, inks.ground);
    r.text(text, 4, middle + 0.5, inks.quiet, SMALL);
  }
}

/** What a plot says under a point. */
export function plotAt(scene: Scene, state: State, x: number, y: number): PlotHit | undefined {
  const place = scene.trackAt(y);
  const info = place?.track.info;
  if (!place || !info || !isPlot(info.kind)) return undefined;
  const { trace } = place.track;
  const plot = lateOf(PLOTS, trace, state)?.[info.owner];
  const found = scene.plots(trace)?.of(info.owner);
  if (!plot || !found) return undefined;
  const { part, bucketNs, begin } = found;
  const time = state.view.begin + (x / scene.width) * state.view.span;
  const bucket = Math.floor((time - scene.offset(trace) - begin) / bucketNs);
  let low = 0;
  let high = part.at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (part.at[middle]! <= bucket) low = middle + 1;
    else high = middle;
  }
  const i = low - 1;
  const now = i >= 0 ? part.last[i] : (part.before ?? undefined);
  const several =
    i >= 0 && part.at[i] === bucket && part.count[i]! > 1
      ? { several: { count: part.count[i]!, min: part.min[i]!, max: part.max[i]! } }
      : {};
  return { plot, time, now, ...several };
}
