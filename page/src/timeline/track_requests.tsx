// SPDX-License-Identifier: MIT
// Requests: each from its begin to its end, and in low lanes below it the threads that worked on it, in their colours:
// what is empty there is time in which nobody did. Their tracks have tiles, but are listed when the page asks for them.
import { kOpenBegin, kOpenEnd, kSummed, type Row } from "../backend/types/tiles";
import { REQUESTS } from "../backend/late_lists";
import type { RequestAnswer } from "../backend/answers";
import type { TraceInfo, TrackInfo } from "../backend/types/trace";
import { word, type Theme } from "../model/colour";
import { lateOf } from "../model/late";
import { visible } from "../model/names";
import { measureRequest } from "../model/requests";
import { store } from "../model/store";
import { count, duration } from "../model/time";
import { ROW } from "../model/tracks";
import { RequestPanel } from "../panels/requests";
import type { Palette } from "./paint";
import { SliceTip } from "./slice_tip";
import { edgeOf, type Inks } from "./theme";
import { laneOfHeights, lateTracks, type SliceHit, type TrackRenderer } from "./track_renderer";

const WORK = 7; // height of a lane of work
const AIR = 5;
const LEAST = 34; // room for a name and a second line

const MOST_LANES = 64;
const lanes = (said: number) => Math.min(MOST_LANES, Math.max(1, said));

/** A trace's facts with a track for each process that has requests. */
export function withRequests(info: TraceInfo, list: RequestAnswer): TraceInfo {
  if (list.tracks.length === 0) return info;
  const several = info.processes.length > 1;
  const tracks = list.tracks.map((of, owner): TrackInfo => {
    const process = info.processes[of.process];
    const left = of.leftOut > 0 ? `; no room for ${count(of.leftOut)}` : "";
    return {
      ...{ id: of.track, kind: "request", owner },
      name: several ? `${process?.name ?? "?"} ${process?.pid ?? ""}` : "Requests",
      ...{ lanes: lanes(of.atOnce) * (1 + lanes(of.workLanes)), workLanes: lanes(of.workLanes) },
      words: `${of.count === 1 ? "1 request" : `${count(of.count)} requests`}${left}`,
    };
  });
  return { ...info, tracks: [...info.tracks, ...tracks] };
}

const isWork = (info: TrackInfo, lane: number) => lane % (1 + (info.workLanes ?? 1)) !== 0;

/** Where a lane is, from the first one's top. */
export function laneOfRequests(info: TrackInfo, lane: number): { y: number; height: number } {
  const works = info.workLanes ?? 1;
  const group = Math.floor(lane / (1 + works));
  const top = group * (ROW + works * WORK + 2);
  const within = lane % (1 + works);
  return within === 0 ? { y: top, height: ROW - 2 } : { y: top + ROW - 1 + (within - 1) * WORK, height: WORK - 1 };
}

const palettes = new Map<Theme, Palette>();

function paletteOf({ theme, frames, background }: Inks): Palette {
  let made = palettes.get(theme);
  if (!made) {
    const fill = Uint32Array.of(word(frames.unknown));
    const edge = Uint32Array.of(word(edgeOf(frames.unknown, theme)));
    palettes.set(theme, (made = { fill, edge, background: word(background), faint: 1 }));
  }
  return made;
}

/** What is known of the request that a slice is of; only the longest are. */
const requestOf = (trace: number, row: Row, at: number) => lateOf(REQUESTS, trace)?.requests[row.index[at]!];

function RequestTip({ hit }: { hit: SliceHit }) {
  const { row, at, info, trace } = hit;
  const known = requestOf(trace, row, at);
  const summed = (row.flags[at]! & kSummed) !== 0;
  const request = summed ? "Requests" : known ? `Request ${known.request}` : "A request";
  if (isWork(info, row.depth)) {
    const thread = store.state.traces[trace]!.info.threads[row.func[at]!];
    const who = thread ? visible(`${thread.name || "thread"} ${thread.tid}`) : "a thread";
    return <SliceTip hit={hit} name={`${who} works on ${request.replace(/^./, (first) => first.toLowerCase())}`} />;
  }
  const open = row.flags[at]! & (kOpenBegin | kOpenEnd);
  return (
    <SliceTip hit={hit} name={request}>
      {known && !summed && known.idle > 0 && (
        <span class="quiet"> · nobody worked on it for {duration(known.idle)}</span>
      )}
      {!summed && open !== 0 && <span class="mark"> · its {open & kOpenBegin ? "begin" : "end"} was not told</span>}
      {!summed && <span class="quiet"> · Click: measure it</span>}
    </SliceTip>
  );
}

export const requestTracks: TrackRenderer = {
  kind: "request",
  panel: { tab: "requests", Panel: RequestPanel },
  late: lateTracks(REQUESTS, withRequests),
  section: {
    title: "Requests",
    key: "requests",
    letter: "r",
    words: (n) => (n === 1 ? "and who worked on them" : `of ${n} processes, and who worked on them`),
    height: (info) => {
      const { y, height } = laneOfRequests(info, info.lanes - 1);
      return Math.max(LEAST, y + height + 1 + AIR);
    },
  },

  draw(frame, place, info) {
    const { scene } = frame;
    const looks = scene.threadLooks(place.track.trace)!;
    const palette = paletteOf(scene.inks);
    frame.drawLanes(place, info, (lane) => {
      if (lane >= info.lanes) return undefined;
      const { y, height } = laneOfRequests(info, lane);
      const at = { y: place.top + 2 + y, height };
      if (isWork(info, lane)) return { palette: looks.full, ...at };
      return {
        palette,
        words: (row, i) => {
          const time = duration(row.duration[i]!);
          const known = requestOf(place.track.trace, row, i);
          return known ? [`${known.request}: ${time}`, known.request] : [time];
        },
        ...at,
      };
    });
  },

  lanesAt: (place, y) => laneOfHeights(place, y, laneOfRequests),

  Tip: RequestTip,

  /** All of it becomes the range, also where a stretch of work was clicked. */
  click({ trace, row, at, info }) {
    const known = requestOf(trace, row, at);
    if (known) measureRequest(trace, known);
    else if (!isWork(info, row.depth)) measureRequest(trace, { begin: row.begin[at]!, duration: row.duration[at]! });
    store.set({ tab: "requests", dockOpen: true });
  },
};
