// SPDX-License-Identifier: MIT
// What samples have seen below a thread's calls, while it ran and while it waited: in the rows of its calls, paler than
// those, as nobody knows when such a frame began and ended, or how often it was called.
import { kOpenEnd, kSummed, type Row } from "../backend/types/tiles";
import { readable, visible } from "../model/names";
import { store } from "../model/store";
import { count, duration } from "../model/time";
import { laneOfRow, type SliceHit, type TrackRenderer } from "./track_renderer";

const drawn = new WeakMap<Row, Row>();

/** Each ends somewhere: torn edges on all of them would say nothing. */
function whole(row: Row): Row {
  let made = drawn.get(row);
  if (!made) drawn.set(row, (made = { ...row, flags: row.flags.map((flags) => flags & ~kOpenEnd) }));
  return made;
}

const samples = (n: number) => (n === 1 ? "1 sample" : `${count(n)} samples`);

function SampleTip({ hit: { trace, row, at, begin, pixelNs } }: { hit: SliceHit }) {
  const { sampled } = store.state.traces[trace]!.info;
  const func = sampled?.functions[row.func[at]!];
  const module = func?.module.slice(func.module.lastIndexOf("/") + 1) ?? "";
  return (
    <>
      <div class="tip-name">{readable(func?.name ?? "?")}</div>
      <div class="tip-facts">
        {row.flags[at]! & kSummed ? (
          <>
            <b>{count(row.count[at]!)} times</b> in {duration(pixelNs)}
          </>
        ) : row.index[at] === 0 ? (
          <b>waited for {duration(row.duration[at]!)}</b>
        ) : (
          <>
            <b>{samples(row.index[at]!)}</b> up to {duration(begin + row.duration[at]!)}, about{" "}
            {duration(row.index[at]! * (sampled?.period ?? 0))} of CPU time
          </>
        )}
        <span class="quiet"> · sampled{module !== "" && ` in ${visible(module)}`}; no traced call</span>
      </div>
    </>
  );
}

export const sampleTracks: TrackRenderer = {
  kind: "samples",
  strip: 0,

  draw(frame, { track, top, ...place }, info) {
    const looks = frame.scene.sampleLooks(track.trace)!;
    frame.drawLanes({ track, top, ...place }, info, (lane) => {
      if (lane >= track.rows) return undefined;
      const y = top + 2 + track.lead + lane * track.rowHeight;
      return { palette: looks.dimmed, looks, y, height: track.rowHeight - (track.folded ? 0 : 1), drawn: whole };
    });
  },

  lanesAt: laneOfRow,
  Tip: SampleTip,
};
