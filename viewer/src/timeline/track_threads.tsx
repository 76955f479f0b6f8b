// Threads: a row for each depth of calls, each call in its function's colour; when a function is highlighted its calls
// are drawn again above the others, which are dimmed.
import { kSummed, type TrackInfo } from "../backend/types";
import { highlight, select } from "../model/actions";
import { readable } from "../model/names";
import { store } from "../model/store";
import { count, duration } from "../model/time";
import { endings } from "./endings";
import type { Frame } from "./frame";
import { drawGaps, drawMoments } from "./gaps";
import type { Label, RowPainter } from "./paint";
import type { Placed } from "./scene";
import { BAND_LEVELS } from "./tile_store";
import { laneOfRow, type SliceHit, type TrackRenderer } from "./track_renderer";
import { drawUnread } from "./unread";

/** Its calls of one band of tiles. */
function drawBand(
  frame: Frame,
  { track, top }: Placed,
  info: TrackInfo,
  band: number,
  low: number,
  high: number,
): void {
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
    frame.addLabels(found, { trace, y: yOf(depth), height: track.rowHeight - 1, looks, how });
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
  for (const { tile, from, to } of marked ? frame.cover(trace, need, marked) : [])
    for (const row of tile.rows) {
      if (row.depth < low || row.depth >= high) continue;
      const found: Label[] = [];
      const part = { begin: tile.origin, pixelNs: tile.pixelNs, from, to };
      at(row.depth).overlay(row, looks.strong, shifted, part, found, labelFrom);
      label(found, row.depth, "strong");
    }
  used.forEach((p, i) => {
    if (p) frame.addBand({ y: yOf(low + i), height: track.rowHeight - (track.folded ? 0 : 1), line: p.line });
  });
}

function CallTip({ hit: { trace, row, at, begin, pixelNs } }: { hit: SliceHit }) {
  const func = store.state.traces[trace]!.info.functions[row.func[at]!];
  const length = duration(row.duration[at]!);
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
            <b>{length}</b> at {duration(begin)}
            {endings(row.flags[at]!).map((words) => (
              <span class="mark"> · {words}</span>
            ))}
          </>
        )}
      </div>
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
    for (let band = Math.floor(from / BAND_LEVELS); band * BAND_LEVELS < to; ++band)
      drawBand(frame, place, info, band, Math.max(from, band * BAND_LEVELS), Math.min(to, (band + 1) * BAND_LEVELS));
  },

  drawAbove({ r, scene, state }, place) {
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
