// SPDX-License-Identifier: MIT
// Threads: a row for each depth of calls, each call in its function's colour; when a function is highlighted its calls
// are drawn again above the others, which are dimmed.
import { kSummed, STRIP_DEPTHS } from "../backend/types/tiles";
import type { TrackInfo } from "../backend/types/trace";
import { highlight, select } from "../model/actions";
import { readable } from "../model/names";
import { store } from "../model/store";
import { count, duration } from "../model/time";
import { asRecorded } from "../model/words";
import { endings } from "./endings";
import type { Frame } from "./frame";
import { drawGaps, drawMoments } from "./gaps";
import { drawNoteMarks } from "./note_marks";
import type { Label, RowPainter } from "./paint";
import type { Placed } from "./scene";
import { BAND_LEVELS } from "./tile_store";
import { laneOfRow, type SliceHit, type TrackRenderer } from "./track_renderer";
import { currentScene } from "./steps";
import { drawUnread } from "./unread";
import { ValueList } from "./value_list";

type Painted = Parameters<Frame["addBand"]>[0];

/** Its calls of one band of tiles. */
function drawBand(
  frame: Frame,
  { track, top }: Placed,
  info: TrackInfo,
  band: number,
  low: number,
  high: number,
): Painted[] {
  const { r, scene, state } = frame;
  const { trace } = track;
  const looks = scene.looks(trace)!;
  const marked = scene.highlightTiles(trace);
  const palette = state.highlight ? looks.dimmed : looks.full;
  const shifted = frame.shifted(trace);
  const need = { track: info.id, band };
  const labelFrom = (track.folded ? 1e9 : 7) * r.scale;
  const used: (RowPainter | undefined)[] = [];
  const at = (depth: number) => (used[depth - low] ??= frame.painter());
  const yOf = (depth: number) => top + 2 + track.lead + depth * track.rowHeight;
  const label = (found: readonly Label[], depth: number, how: "plain" | "dim" | "strong") =>
    frame.addLabels(found, { trace, thread: track.thread, y: yOf(depth), height: track.rowHeight - 1, looks, how });
  for (const { tile, from, to } of frame.cover(trace, need))
    for (const row of tile.rows) {
      if (row.depth < low || row.depth >= high) continue;
      const found: Label[] = [];
      const part = { begin: tile.origin, pixelNs: tile.pixelNs, from, to };
      at(row.depth).add(row, palette, shifted, part, found, labelFrom);
      // The highlighted ones are drawn again, in full.
      const others = marked ? found.filter((one) => row.func[one.at] !== marked.only) : found;
      label(others, row.depth, state.highlight ? "dim" : "plain");
    }
  for (const p of used) p?.finish(palette);
  const colours = state.highlight ? undefined : scene.colours(trace);
  used.forEach(
    (p, i) => p && colours?.paint(p.line, track.thread, low + i, shifted.begin, shifted.pixel, scene.inks.theme),
  );
  for (const { tile, from, to } of marked ? frame.cover(trace, need, marked) : [])
    for (const row of tile.rows) {
      if (row.depth < low || row.depth >= high) continue;
      const found: Label[] = [];
      const part = { begin: tile.origin, pixelNs: tile.pixelNs, from, to };
      at(row.depth).overlay(row, looks.strong, shifted, part, found, labelFrom, marked!.longest);
      label(found, row.depth, "strong");
    }
  const painted = used.flatMap((p, i) =>
    p ? [{ y: yOf(low + i), height: track.rowHeight - (track.folded ? 0 : 1), line: p.line }] : [],
  );
  for (const line of painted) frame.addBand(line);
  return painted;
}

const WASH_FROM = 2; // pixels: shorter waits would be a haze over the calls

/** Waiting does not look like working: while the thread was blocked its calls are paled. `lines`: those painted, from the top. */
function washWaits(frame: Frame, { track }: Placed, lines: readonly Painted[]): void {
  const states = track.strips.find(({ info }) => info.kind === "states");
  if (!states || track.folded) return;
  const { scale, width } = frame.r;
  const blocked = STRIP_DEPTHS.indexOf("blocked");
  const least = frame.pixelNs * scale * WASH_FROM;
  const offset = frame.scene.offset(track.trace);
  // Tiles lie side by side, and a wait across their border is in both.
  let behind = -Infinity;
  for (const { tile } of frame.cover(track.trace, { track: states.info.id, band: 0 })) {
    const row = tile.rows.find(({ depth }) => depth === blocked);
    if (!row) continue;
    for (let i = 0; i < row.begin.length; ++i) {
      const end = row.begin[i]! + row.duration[i]!;
      if (row.duration[i]! < least || row.flags[i]! & kSummed || row.begin[i]! < behind) continue;
      const x0 = Math.max(0, frame.toX(row.begin[i]! + offset));
      const x1 = Math.min(width, frame.toX(end + offset));
      if (x1 - x0 < WASH_FROM) continue;
      behind = end;
      const middle = Math.round(((x0 + x1) / 2) * scale);
      for (const { y, height, line } of lines) if (line[middle] !== 0) frame.addWash(x0, y, x1 - x0, height);
    }
  }
}

const MOST_VALUES_TOLD = 8;

function CallTip({ hit: { trace, track, row, at, begin, pixelNs } }: { hit: SliceHit }) {
  const { info } = store.state.traces[trace]!;
  const func = info.functions[row.func[at]!];
  const length = asRecorded(info, row.duration[at]!);
  const values = currentScene()?.valuesOf(trace, track.thread, row, at);
  return (
    <>
      <div class="tip-name">{readable(func?.name ?? "?")}</div>
      <div class="tip-facts">
        {row.flags[at]! & kSummed ? (
          <>
            <b>{count(row.count[at]!)} calls</b> in {duration(pixelNs)}; the longest, {length}, is named. Click to zoom
            in.
          </>
        ) : (
          <>
            <b>{length}</b>, at {duration(begin)}
            {endings(row.flags[at]!).map((words) => (
              <span class="mark"> · {words}</span>
            ))}
          </>
        )}
      </div>
      {values && <ValueList values={values} most={MOST_VALUES_TOLD} />}
    </>
  );
}

export const threadTracks: TrackRenderer = {
  kind: "thread",

  // While the thread lived.
  drawGround(frame, { track, top }) {
    const thread = frame.state.traces[track.trace]!.info.threads[track.thread]!;
    const offset = frame.scene.offset(track.trace);
    const from = Math.max(0, frame.toX(thread.begin + offset));
    const to = Math.min(frame.r.width, frame.toX(thread.end + offset));
    if (to > from) frame.r.rect(from, top, to - from, track.height - 1, frame.scene.inks.lane);
  },

  draw(frame, place, info) {
    const { r, scene, state } = frame;
    drawGaps(r, scene, state, place);
    drawUnread(r, scene, state, place);
    const { from, to } = scene.levels(place);
    const lines: Painted[] = [];
    for (let band = Math.floor(from / BAND_LEVELS); band * BAND_LEVELS < to; ++band) {
      const high = Math.min(to, (band + 1) * BAND_LEVELS);
      lines.push(...drawBand(frame, place, info, band, Math.max(from, band * BAND_LEVELS), high));
    }
    washWaits(frame, place, lines);
  },

  drawAbove({ r, scene, state }, place) {
    drawNoteMarks(r, scene, state, place);
    drawMoments(r, scene, state, place);
  },

  lanesAt: laneOfRow,
  Tip: CallTip,

  click({ trace, track, row, at }, all) {
    if (all) {
      highlight(trace, row.func[at]!);
      return;
    }
    select(
      { trace, thread: track.thread, index: row.index[at]! },
      { begin: row.begin[at]!, duration: row.duration[at]!, function: row.func[at]!, depth: row.depth },
    );
  },
};
