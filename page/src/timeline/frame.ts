// SPDX-License-Identifier: MIT
// One picture in the making: what kinds of tracks draw into. Slices are painted into lines of device pixels first, all
// lines go onto the canvas at once, and names come last.
import { kSummed, kOpenBegin, type Row } from "../backend/types/tiles";
import type { TrackInfo } from "../backend/types/trace";
import type { State } from "../model/store";
import { duration } from "../model/time";
import { valueWords } from "../model/values";
import { asRecorded } from "../model/words";
import { drawEnds } from "./endings_drawn";
import { RowPainter, type Label, type Palette } from "./paint";
import { FONT, SMALL, type Band, type Renderer } from "./renderer";
import type { Placed, Scene } from "./scene";
import type { Looks } from "./theme";
import type { Need, TileStore } from "./tile_store";

const MOST_LABELS = 2200;
const VALUES_FROM = 70; // pixels of room: behind a short name some of them can be read
const LEAST_WORDS = 8;
const painters: RowPainter[] = [];

interface PlacedLabel extends Label {
  readonly trace: number;
  /** Whose calls they are; left out: slices of something else. */
  readonly thread?: number;
  readonly y: number;
  readonly height: number;
  /** What it is named by; left out: `words` says it. */
  readonly looks?: Looks;
  readonly words?: LaneLook["words"];
  readonly how: "plain" | "dim" | "strong";
}

/** How slices of a lane are drawn. */
export interface LaneLook {
  readonly palette: Palette;
  /** Names them; left out: they have none. */
  readonly looks?: Looks;
  /** What a slice says in place of a name, the longest form first. None is cut. */
  readonly words?: (row: Row, at: number) => readonly string[];
  readonly y: number;
  readonly height: number;
  /** What is drawn in a row's place; left out: itself. */
  readonly drawn?: (row: Row) => Row;
  /** Nothing is known before, ns of the trace. */
  readonly from?: number;
}

/** For one area of one picture. */
export class Frame {
  /** Device pixels. */
  readonly width: number;
  readonly pixelNs: number;
  private readonly bands: Band[] = [];
  private readonly labels: PlacedLabel[] = [];
  private readonly washes: { x: number; y: number; width: number; height: number }[] = [];
  private nextPainter = 0;

  constructor(
    readonly r: Renderer,
    readonly scene: Scene,
    readonly state: State,
  ) {
    this.width = Math.max(1, Math.round(r.width * r.scale));
    this.pixelNs = state.view.span / this.width;
  }

  toX(ns: number): number {
    return ((ns - this.state.view.begin) / this.state.view.span) * this.r.width;
  }

  /** What is in view, in a trace's own time. */
  shifted(trace: number): { begin: number; pixel: number } {
    return { begin: this.state.view.begin - this.scene.offset(trace), pixel: this.pixelNs };
  }

  painter(): RowPainter {
    const i = this.nextPainter++;
    let p = painters[i];
    if (!p || p.width !== this.width) painters[i] = p = new RowPainter(this.width);
    p.start();
    return p;
  }

  cover(trace: number, need: Need, tiles: TileStore = this.scene.tiles(trace)!): ReturnType<TileStore["cover"]> {
    const { begin, pixel } = this.shifted(trace);
    return tiles.cover(need, begin, begin + this.state.view.span, pixel);
  }

  /** A line that was painted. */
  addBand(band: Band): void {
    this.bands.push(band);
  }

  /** Where calls were open and nothing ran: paled and hatched, below the names. */
  addWash(x: number, y: number, width: number, height: number): void {
    this.washes.push({ x, y, width, height });
  }

  addLabels(found: readonly Label[], of: Omit<PlacedLabel, keyof Label>): void {
    for (const label of found) this.labels.push({ ...label, ...of });
  }

  /** The lanes of a track that has few, each as `look` says; undefined: not drawn. */
  drawLanes({ track }: Placed, info: TrackInfo, look: (lane: number) => LaneLook | undefined): void {
    const used: (RowPainter | undefined)[] = [];
    for (const { tile, from, to } of this.cover(track.trace, { track: info.id, band: 0 }))
      for (const of of tile.rows) {
        const lane = look(of.depth);
        if (!lane) continue;
        const row = lane.drawn?.(of) ?? of;
        const found: Label[] = [];
        const least = Math.max(from, lane.from ?? -Infinity);
        (used[row.depth] ??= this.painter()).add(
          row,
          lane.palette,
          this.shifted(track.trace),
          { begin: tile.origin, pixelNs: tile.pixelNs, from: least, to },
          found,
          12 * this.r.scale,
        );
        const { looks, words, y, height } = lane;
        const says = looks ? { looks } : words && { words };
        if (says) this.addLabels(found, { trace: track.trace, y, height, ...says, how: "plain" });
      }
    used.forEach((p, depth) => {
      const lane = look(depth);
      if (!p || !lane) return;
      p.finish(lane.palette);
      this.addBand({ y: lane.y, height: lane.height, line: p.line });
    });
  }

  /** Puts all of it onto the canvas; returns how many lines it has. */
  finish(): number {
    this.r.bands(this.bands);
    const { wash, washLine } = this.scene.inks;
    for (const { x, y, width, height } of this.washes) {
      this.r.rect(x, y, width, height, wash);
      this.r.hatch(x, y, width, height, washLine, "falling");
    }
    this.drawLabels();
    return this.bands.length;
  }

  private drawLabels(): void {
    const least = this.labels.length > MOST_LABELS ? 60 : 24;
    const lastIndex = new Map<number, string>();
    for (const label of this.labels) {
      // A call that reaches over a tile's border is in both tiles.
      const key = `${label.trace}.${label.row.index[label.at]!}.${label.from}.${label.how === "dim"}`;
      if (lastIndex.get(label.y) === key) continue;
      lastIndex.set(label.y, key);
      this.drawLabel(label, least);
    }
  }

  /** A name, and what the call was given where there is room for it. */
  private labelText(
    { row, at, looks, words, trace, thread }: Omit<PlacedLabel, "y" | "height" | "how">,
    room: number,
  ): string {
    if (words) return words(row, at).find((form) => this.r.textWidth(form) <= room) ?? "";
    const forms = looks?.forms(row.func[at]!) ?? ["?"];
    const values =
      thread !== undefined && room >= VALUES_FROM ? this.scene.valuesOf(trace, thread, row, at) : undefined;
    return values ? fittedWith(this.r, forms, valueWords(values), room) : fitted(this.r, forms, room);
  }

  private drawLabel({ row, at, y, height, how, looks, words, ...label }: PlacedLabel, least: number): void {
    const { r, scene } = this;
    const from = label.from / r.scale;
    const to = label.to / r.scale;
    const flags = row.flags[at]! & ~kSummed;
    if (flags !== 0) drawEnds(r, scene, from, to, y, height, flags);
    // What ran on a CPU may have begun before the trace, where nothing is drawn.
    const start = this.toX(scene.offset(label.trace));
    const left = Math.max(from, 0, start) + (flags & kOpenBegin && from >= 0 ? 9 : 4);
    const right = Math.min(to, r.width) - (flags & ~kOpenBegin && to <= r.width ? 12 : 4);
    const room = right - left;
    if (to - from < least || room < 14) return;
    const { inks } = scene;
    const middle = y + height / 2 + 0.5;
    const text = this.labelText({ row, at, ...(looks ? { looks } : {}), ...(words ? { words } : {}), ...label }, room);
    if (text === "") return;
    r.text(text, left, middle, how === "dim" ? inks.quiet : how === "strong" ? inks.onStrong : inks.onCall, FONT);
    if (how === "dim" || room < 110 || words) return;
    for (const time of this.timesOf(row.duration[at]!, label.trace, label.thread, row.index[at]!)) {
      const timeWidth = r.textWidth(time, SMALL);
      if (room <= r.textWidth(text) + timeWidth + 14) continue;
      r.text(time, right - timeWidth, middle, how === "strong" ? inks.onStrong : inks.onCallQuiet, SMALL);
      break;
    }
  }

  /** The longest words first. The dock tells of a selected call how long it was without tracing as well. */
  private timesOf(ns: number, trace: number, thread: number | undefined, index: number): string[] {
    const { selected, traces } = this.state;
    const on = selected?.trace === trace && selected.thread === thread && selected.index === index;
    return [...(on ? [asRecorded(traces[trace]!.info, ns)] : []), duration(ns)];
  }
}

/**
 * The same with `words` behind the name: as much of them as fits behind the longest form that leaves room for all of
 * them, else behind the shortest. Less than LEAST_WORDS letters of them are not worth a shorter name.
 */
export function fittedWith(
  r: Pick<Renderer, "textWidth">,
  forms: readonly string[],
  words: string,
  room: number,
): string {
  const shortest = forms[forms.length - 1]!;
  const least = shortest + words.slice(0, LEAST_WORDS);
  if (least.length >= room || r.textWidth(least) > room) return fitted(r, forms, room);
  return fitted(
    r,
    forms.map((form) => form + words),
    room,
  );
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
