// SPDX-License-Identifier: MIT
// Messages in the timeline: in a lane above a thread's calls a mark each, with its text where there is room; one mark
// for all that share some pixels.
import type { Backend } from "../backend/types/backend";
import type { NoteMark } from "../backend/types/notes";
import type { TraceInfo } from "../backend/types/trace";
import { css, inkColour } from "../model/colour";
import { visible } from "../model/names";
import type { State } from "../model/store";
import { count } from "../model/time";
import { NOTE_AIR } from "../model/tracks";
import { SMALL, type Renderer } from "./renderer";
import type { Placed, Scene } from "./scene";
import { bucketOf, ViewAnswer, type Buckets } from "./view_answer";

/** Pixels that share a mark, at least; twice as many at most. */
const SHARED = 6;
const TEXT_FROM = 26; // px to the next mark: less is no word
const SIGN = 4; // half of a mark's width
const MOST_LETTERS = 300;

/** Messages of a thread that share a mark. */
export interface NoteHit {
  readonly mark: NoteMark;
  /** What shares a mark, ns. */
  readonly bucketNs: number;
}

/** How a backend is asked. */
function asking(backend: Backend) {
  return async ({ begin, end }: Buckets, width: number, threads: readonly number[], signal: AbortSignal) => {
    const marks = new Map<number, NoteMark[]>();
    for (const mark of await backend.noteMarks({ begin, end, threads }, width, ["message"], signal)) {
      const of = marks.get(mark.thread);
      if (of) of.push(mark);
      else marks.set(mark.thread, [mark]);
    }
    return marks;
  };
}

/** Marks of one trace, by thread. */
export class NoteMarks {
  private readonly answer: ViewAnswer<ReadonlyMap<number, readonly NoteMark[]>>;

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

  of(thread: number): readonly NoteMark[] {
    return this.answer.kept?.value.get(thread) ?? [];
  }

  get bucketNs(): number {
    return this.answer.kept?.bucketNs ?? 1;
  }

  /** What the next picture shows: a range in the trace's own time, pixels of that length, and threads with messages. */
  want(begin: number, end: number, pixelNs: number, threads: readonly number[]): void {
    this.answer.want(begin, end, bucketOf(pixelNs, SHARED), threads);
  }
}

/** Where the lane of a placed thread lies. */
function laneOf({ track, top }: Placed): { y: number; height: number } {
  return { y: top + 2 + track.lead - track.lane - track.notes, height: track.notes - NOTE_AIR };
}

/** The marks that may be seen, by bisection: the first at or behind `ns`. */
function firstAt(marks: readonly NoteMark[], ns: number): number {
  let low = 0;
  let high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle]!.time < ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

const words = ({ line, count: n }: NoteMark) => (n > 1 ? `${count(n)}×` : visible(line.slice(0, MOST_LETTERS)));

export function drawNoteMarks(r: Renderer, scene: Scene, state: State, place: Placed): void {
  const { track } = place;
  const marks = track.notes > 0 ? (scene.noteMarks(track.trace)?.of(track.thread) ?? []) : [];
  if (marks.length === 0) return;
  const { inks } = scene;
  const { y, height } = laneOf(place);
  const { begin, span } = state.view;
  const offset = scene.offset(track.trace);
  const x = (ns: number) => ((ns + offset - begin) / span) * r.width;
  const middle = y + height / 2;
  const half = Math.min(SIGN, height / 2);
  // One step back: the text of a mark left of the edge.
  for (let i = Math.max(0, firstAt(marks, begin - offset) - 1); i < marks.length; ++i) {
    const mark = marks[i]!;
    const at = x(mark.time);
    if (at > r.width + SIGN) break;
    const ink = mark.colour === undefined ? inks.note : css(inkColour(mark.colour, inks.theme));
    const room = (i + 1 < marks.length ? x(marks[i + 1]!.time) : r.width) - x(mark.last) - SIGN * 2 - 4;
    if (mark.count > 1) r.rect(at - 1, middle - half, x(mark.last) - at + 2, half * 2, ink);
    else if (room < 4) r.rect(at - 1, middle - half, 2, half * 2, ink);
    else r.polygon([at, middle - half, at + half, middle, at, middle + half, at - half, middle], ink);
    if (room < TEXT_FROM || height < 10) continue;
    const all = words(mark);
    const text = clipped(r, all, room);
    // A number that is cut is another number.
    if (mark.count > 1 && text !== all) continue;
    if (text !== "") r.text(text, x(mark.last) + SIGN + 3, middle + 0.5, ink, SMALL);
  }
}

/** As much of a text as fits, with a sign that there is more. */
function clipped(r: Pick<Renderer, "textWidth">, text: string, room: number): string {
  if (text.length * 3 < room * 2 && r.textWidth(text, SMALL) <= room) return text;
  let n = Math.min(text.length, Math.floor(room / 3));
  if (n === text.length && r.textWidth(text, SMALL) <= room) return text;
  n = Math.min(n, text.length - 1);
  while (n > 1 && r.textWidth(`${text.slice(0, n)}…`, SMALL) > room) n -= Math.max(1, n >> 4);
  return n > 1 ? `${text.slice(0, n)}…` : "";
}

/** The mark under a point of a thread's track, or the text beside it. */
export function noteAt(scene: Scene, state: State, x: number, y: number): (NoteHit & { place: Placed }) | undefined {
  const place = scene.trackAt(y);
  if (!place || place.track.notes === 0) return undefined;
  const lane = laneOf(place);
  if (y < lane.y - 1 || y > lane.y + lane.height + 1) return undefined;
  const store = scene.noteMarks(place.track.trace);
  const marks = store?.of(place.track.thread) ?? [];
  const { begin, span } = state.view;
  const toX = (ns: number) => ((ns + scene.offset(place.track.trace) - begin) / span) * scene.width;
  const ns = begin + ((x + SIGN + 1) / scene.width) * span - scene.offset(place.track.trace);
  const at = firstAt(marks, ns) - 1;
  const hit = (i: number, from: number, to: number) => {
    const mark = marks[i];
    return mark && x >= toX(mark.time) + from && x <= toX(mark.last) + to
      ? { mark, bucketNs: store!.bucketNs, place }
      : undefined;
  };
  const next = marks[at + 1] ? toX(marks[at + 1]!.time) : scene.width;
  const last = marks[at];
  if (!last) return undefined;
  // Its own sign; else its text, some 6 pixels a letter, as far as that is drawn.
  const room = next - toX(last.last) - SIGN * 2 - 4;
  const text = room < TEXT_FROM || lane.height < 10 ? 0 : Math.min(room, words(last).length * 6);
  return hit(at, -SIGN - 1, SIGN + 3 + text);
}
