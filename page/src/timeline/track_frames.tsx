// SPDX-License-Identifier: MIT
// Frames: a bar above all threads for each name, coloured by how long a frame took against the target. Where several
// share a pixel its colour is the longest one's. Tracks have tiles, but are listed when the page asks for them.
import { FRAMES } from "../backend/late_lists";
import type { FrameList } from "../backend/types/frames";
import { kOpenBegin, kSummed, type Row } from "../backend/types/tiles";
import type { TraceInfo, TrackInfo } from "../backend/types/trace";
import { classOf, FRAME_CLASSES, selectFrame, targetWords } from "../model/frames";
import { visible } from "../model/names";
import { store } from "../model/store";
import { count, duration } from "../model/time";
import { word, type Theme } from "../model/colour";
import { useAnswer } from "../panels/answers";
import { FramePanel } from "../panels/frames";
import { Picture } from "./frame_picture";
import type { Palette } from "./paint";
import { SliceTip } from "./slice_tip";
import { edgeOf, type Inks } from "./theme";
import { laneOfRow, lateTracks, type SliceHit, type TrackRenderer } from "./track_renderer";

const HEIGHT = 34; // room for a name and a second line

/** A trace's facts with a track for each name. */
export function withFrames(info: TraceInfo, list: FrameList): TraceInfo {
  if (list.frames.length === 0) return info;
  const several = info.processes.length > 1;
  const tracks = list.frames.map(({ track, process, name, count: n }, owner): TrackInfo => {
    const of = info.processes[process];
    const whose = several ? ` · ${of?.name ?? "?"} ${of?.pid ?? ""}` : "";
    const words = n === 1 ? "1 frame" : `${count(n)} frames`;
    return { id: track, kind: "frame", name: `${visible(name) || "(no name)"}${whose}`, owner, lanes: 1, words };
  });
  return { ...info, tracks: [...info.tracks, ...tracks], moreFrames: list.more };
}

interface Drawn {
  target: number;
  row: Row;
}
const drawn = new WeakMap<Row, Drawn>();

/** A slice's function is its class: by the longest frame in it. */
export function classed(row: Row, target: number): Row {
  let made = drawn.get(row);
  if (made?.target !== target) {
    const func = row.func.map((_, i) => classOf(row.duration[i]!, !(row.flags[i]! & kOpenBegin), target));
    drawn.set(row, (made = { target, row: { ...row, func } }));
  }
  return made.row;
}

const palettes = new Map<Theme, Palette>();

function paletteOf({ theme, frames, background }: Inks): Palette {
  let made = palettes.get(theme);
  if (!made) {
    const fill = Uint32Array.from(FRAME_CLASSES, (of) => word(frames[of]));
    const edge = Uint32Array.from(FRAME_CLASSES, (of) => word(edgeOf(frames[of], theme)));
    palettes.set(theme, (made = { fill, edge, background: word(background), faint: 1 }));
  }
  return made;
}

const targetNs = () => store.state.frameTarget * 1e6;

/** What the frame below the pointer showed. */
function TipPicture({ trace, set, number }: { trace: number; set: number; number: number }) {
  const key = `${trace}.${set}.${number}`;
  const answer = useAnswer(
    key,
    async (signal) => ({
      key,
      facts: await store.state.traces[trace]!.backend.frame(set, targetNs(), number, signal),
    }),
    80,
  );
  const picture = answer.value?.key === key ? answer.value.facts.picture : undefined;
  return picture ? <Picture of={picture} testid="tip-picture" /> : null;
}

function FrameTip({ hit }: { hit: SliceHit }) {
  const { row, at, info, trace } = hit;
  const shows = store.state.traces[trace]!.info.threads.some(({ notes }) => (notes?.picture ?? 0) > 0);
  const summed = (row.flags[at]! & kSummed) !== 0;
  const of = FRAME_CLASSES[classOf(row.duration[at]!, !(row.flags[at]! & kOpenBegin), targetNs())]!;
  return (
    <SliceTip hit={hit} name={`${info.name}${summed ? "" : ` ${count(row.index[at]!)}`}`}>
      {of === "unknown" && <span class="quiet"> · nobody marked where the first frame begins</span>}
      {(of === "over" || of === "far") && (
        <span class="mark">
          {" "}
          · over the target of {targetWords(targetNs())}
          {of === "far" ? ", more than twice" : ""}
        </span>
      )}
      {shows && !summed && <TipPicture trace={trace} set={info.owner} number={row.index[at]!} />}
    </SliceTip>
  );
}

export const frameTracks: TrackRenderer = {
  kind: "frame",
  panel: { tab: "frames", Panel: FramePanel },
  late: lateTracks(FRAMES, withFrames),
  section: {
    title: "Frames",
    key: "frames",
    letter: "f",
    above: true,
    height: () => HEIGHT,
    words: (n, { moreFrames = 0 }) => (moreFrames > 0 ? `${n} of ${count(n + moreFrames)} names` : ""),
  },

  draw(frame, place, info) {
    const { scene } = frame;
    const { track, top } = place;
    const palette = paletteOf(scene.inks);
    const target = targetNs();
    frame.drawLanes(place, info, (lane) =>
      lane > 0
        ? undefined
        : {
            palette,
            drawn: (row) => classed(row, target),
            words: (row, at) => {
              const time = duration(row.duration[at]!);
              return [`${count(row.index[at]!)}: ${time}`, time];
            },
            y: top + 2,
            height: track.rowHeight - 1,
          },
    );
  },

  lanesAt: laneOfRow,
  Tip: FrameTip,

  click({ trace, row, at, info }) {
    const begin = row.begin[at]!;
    selectFrame(trace, info.owner, row.index[at]!, { begin, end: begin + row.duration[at]! });
  },
};
