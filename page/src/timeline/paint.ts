// SPDX-License-Identifier: MIT
// Paints one level of one thread into a line of device pixels.
//
// A call at least a pixel long is painted as it is. Shorter ones share a pixel: the longest call wins
// its colour, and how much of the pixel the calls cover is its strength against the background. So
// a burst of short calls looks dense, a single one faint, and neither hides behind the other.
import type { Row } from "../backend/types/tiles";
import { kSummed } from "../backend/types/tiles";

export interface Palette {
  /** By function: fill, and the darker line at a call's end. 0xAABBGGRR. */
  readonly fill: Uint32Array;
  readonly edge: Uint32Array;
  readonly background: number;
  /** How strong a call is that covers next to nothing of its pixel, 0 to 1. */
  readonly faint?: number;
}

/** A slice wide enough for a name. Pixels are device pixels. */
export interface Label {
  readonly row: Row;
  readonly at: number;
  readonly from: number;
  readonly to: number;
}

export class RowPainter {
  readonly line: Uint32Array;
  private readonly cover: Float32Array;
  private readonly longest: Float64Array;
  private readonly winner: Uint32Array;

  constructor(readonly width: number) {
    this.line = new Uint32Array(width);
    this.cover = new Float32Array(width);
    this.longest = new Float64Array(width);
    this.winner = new Uint32Array(width);
  }

  start(): void {
    this.line.fill(0);
    this.cover.fill(0);
    this.longest.fill(-1);
  }

  /**
   * Adds the slices of `row` that lie in [tile.from, tile.to) ns. `view` is where the picture begins and how long its
   * pixels are, `tile.begin` and `tile.pixelNs` are those that the slices were summed for. Slices at least `labelFrom`
   * pixels wide are added to `labels`.
   */
  add(
    row: Row,
    palette: Palette,
    view: { begin: number; pixel: number },
    tile: { begin: number; pixelNs: number; from: number; to: number },
    labels?: Label[],
    labelFrom = 20,
  ): void {
    const { begin: begins, duration: durations, func, flags, density } = row;
    const { fill, edge } = palette;
    const { line, cover, longest, winner, width } = this;
    const scale = 1 / view.pixel;
    const clipLow = Math.max(0, Math.round((tile.from - view.begin) * scale));
    const clipHigh = Math.min(width, Math.round((tile.to - view.begin) * scale));
    if (clipLow >= clipHigh) return;
    const n = begins.length;
    const viewEnd = view.begin + width * view.pixel;
    const seenFrom = Math.max(view.begin, tile.from);
    const seenTo = Math.min(viewEnd, tile.to);
    // Calls of one level follow one another, so the first that may be seen is the last to begin before the edge.
    let low = 0;
    let high = n;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begins[middle]! < seenFrom) low = middle + 1;
      else high = middle;
    }
    // One step back for a call that crosses the edge, another for a sum that begins in the same pixel.
    for (let i = Math.max(0, low - 2); i < n; ++i) {
      const begin = begins[i]!;
      if (begin >= seenTo) break;
      const duration = durations[i]!;
      const x0 = (begin - view.begin) * scale;
      const x1 = x0 + duration * scale;
      const f = func[i]!;
      const summed = (flags[i]! & kSummed) !== 0;
      if (!summed && x1 - x0 >= 1) {
        if (x1 <= clipLow) continue;
        const left = Math.round(x0);
        const right = Math.max(left + 1, Math.round(x1));
        const a = Math.max(clipLow, left);
        const b = Math.min(clipHigh, right);
        if (a >= b) continue;
        line.fill(fill[f]!, a, b);
        longest.fill(Infinity, a, b);
        if (right - left >= 3 && right <= clipHigh && right > a) line[right - 1] = edge[f]!;
        if (labels && x1 - x0 >= labelFrom) labels.push({ row, at: i, from: left, to: right });
        continue;
      }
      const share = density[i]! / 255;
      let a = Math.floor(x0);
      let b = a + 1;
      let part = (x1 - x0) * share;
      if (summed) {
        part = share * tile.pixelNs * scale;
        if (part > share * 1.01) {
          // Summed for longer pixels than ours: all of that pixel stands for it.
          const start = tile.begin + Math.floor((begin - tile.begin) / tile.pixelNs) * tile.pixelNs;
          a = Math.round((start - view.begin) * scale);
          b = Math.max(a + 1, Math.round((start + tile.pixelNs - view.begin) * scale));
          part = share;
        }
      }
      for (let x = Math.max(a, clipLow); x < b && x < clipHigh; ++x) {
        if (longest[x] === Infinity) continue;
        cover[x]! += part;
        if (duration > longest[x]!) {
          longest[x] = duration;
          winner[x] = f;
        }
      }
    }
  }

  /**
   * Paints the slices of `row` over all that is there, at least a pixel wide each, at full strength: calls to be
   * found however short they are. `longest`: durations next to it are at full strength, others the weaker the shorter.
   */
  overlay(
    row: Row,
    palette: Palette,
    view: { begin: number; pixel: number },
    tile: { from: number; to: number },
    labels?: Label[],
    labelFrom = 20,
    longest = 0,
  ): void {
    const scale = 1 / view.pixel;
    const low = Math.max(0, Math.round((tile.from - view.begin) * scale));
    const high = Math.min(this.width, Math.round((tile.to - view.begin) * scale));
    for (let i = 0; i < row.begin.length; ++i) {
      const left = Math.round((row.begin[i]! - view.begin) * scale);
      const right = Math.max(left + 1, Math.round((row.begin[i]! + row.duration[i]! - view.begin) * scale));
      if (left >= high) break;
      if (right <= low) continue;
      const full = palette.fill[row.func[i]!]!;
      const share = strength(row.duration[i]!, longest);
      const fill = share < 1 ? blend(full, palette.background, share) : full;
      this.line.fill(fill, Math.max(left, low), Math.min(right, high));
      if (right - left >= 3 && right <= high) this.line[right - 1] = palette.edge[row.func[i]!]!;
      if (labels && right - left >= labelFrom) labels.push({ row, at: i, from: left, to: right });
    }
  }

  /** Turns what shares pixels into colours. */
  finish(palette: Palette): void {
    const { line, cover, longest, winner, width } = this;
    const { fill, background, faint = 0.35 } = palette;
    for (let x = 0; x < width; ++x) {
      const longestHere = longest[x]!;
      if (longestHere < 0 || longestHere === Infinity) continue;
      line[x] = blend(fill[winner[x]!]!, background, faint + (1 - faint) * Math.min(1, cover[x]!));
    }
  }
}

/** By the logarithm: a hundredth of the longest, and what is shorter still, is weakest. */
export function strength(duration: number, longest: number): number {
  if (!(longest > 0) || duration >= longest) return 1;
  return 0.4 + 0.6 * Math.max(0, 1 + Math.log10(Math.max(duration, 1e-9) / longest) / 2);
}

export function blend(over: number, under: number, share: number): number {
  const part = (shift: number) =>
    (((over >>> shift) & 255) * share + ((under >>> shift) & 255) * (1 - share) + 0.5) & 255;
  return (0xff000000 | (part(16) << 16) | (part(8) << 8) | part(0)) >>> 0;
}
