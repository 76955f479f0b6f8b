// SPDX-License-Identifier: MIT
// What a thread did beside its calls: a strip above them. States are told apart by colour and by height.
import { useEffect, useState } from "preact/hooks";
import type { StateLine } from "../backend/types/calls";
import { kSummed, STRIP_DEPTHS } from "../backend/types/tiles";
import { goToWaker } from "../model/actions";
import { visible } from "../model/names";
import { store } from "../model/store";
import { STRIP_AIR } from "../model/tracks";
import { SliceTip } from "./slice_tip";
import { statePalette } from "./theme";
import type { SliceHit, TrackRenderer } from "./track_renderer";

/** Words for STRIP_DEPTHS. */
export const STATE_NAMES = {
  running: "on CPU",
  runnable: "runnable, waiting for a CPU",
  blocked: "blocked",
  unknown: "not known",
};

const STRIP = 9;
/** Of STRIP_DEPTHS. */
const HEIGHTS = [STRIP, 6, 3, STRIP];

/** What the server says of a state; asked for once the pointer rests. */
function useLine(hit: SliceHit): StateLine | undefined {
  const [line, setLine] = useState<StateLine>();
  const { trace, track, row, at } = hit;
  const wanted = (row.flags[at]! & kSummed) === 0;
  const index = row.index[at]!;
  useEffect(() => {
    setLine(undefined);
    if (!wanted) return;
    let dropped = false;
    const timer = setTimeout(() => {
      store.state.traces[trace]?.backend.state(track.thread, index).then(
        (found) => !dropped && setLine(found),
        () => undefined, // what is known without it is shown already
      );
    }, 60);
    return () => {
      dropped = true;
      clearTimeout(timer);
    };
  }, [wanted ? `${trace}.${track.thread}.${index}` : ""]);
  return line;
}

function StateTip({ hit }: { hit: SliceHit }) {
  const line = useLine(hit);
  const name = line ? visible(line.words) : STATE_NAMES[STRIP_DEPTHS[hit.row.depth] ?? "unknown"];
  return (
    <SliceTip hit={hit} name={name}>
      {line?.waker && <span class="quiet"> · Click: go to the call that woke it</span>}
    </SliceTip>
  );
}

export const stateTracks: TrackRenderer = {
  kind: "states",
  strip: STRIP,

  draw(frame, place, info) {
    const { track, top } = place;
    const strip = track.strips.find((one) => one.info === info);
    const thread = frame.state.traces[track.trace]!.info.threads[track.thread];
    if (!strip || !thread) return;
    frame.drawLanes(place, info, (lane) => {
      const height = HEIGHTS[lane];
      if (height === undefined) return undefined;
      // Of a thread that was not born yet nothing is known because there is nothing.
      const born = STRIP_DEPTHS[lane] === "unknown" ? { from: thread.begin } : {};
      // Folded it is lower, and so are its parts.
      const part = Math.max(1, Math.round((height * strip.height) / STRIP));
      const y = top + 2 + strip.top + strip.height - part;
      return { palette: statePalette(frame.scene.inks, lane), y, height: part, ...born };
    });
  },

  lanesAt({ track, top }, y) {
    const strip = track.strips.find(({ info }) => info.kind === "states");
    const from = top + 2 + (strip?.top ?? 0);
    return strip && y >= from && y < from + strip.height + STRIP_AIR ? STRIP_DEPTHS.map((_, lane) => lane) : [];
  },

  Tip: StateTip,

  /** A wait leads to the call that ended it. */
  click({ trace, track, row, at }) {
    void goToWaker(trace, track.thread, row.index[at]!);
  },
};
