// SPDX-License-Identifier: MIT
// What the timeline asks of each kind of track. A kind is a file track_*.tsx and its line in kinds.ts.
import type { ComponentType, JSX } from "preact";
import type { LateList } from "../backend/types/late";
import type { Row } from "../backend/types/tiles";
import type { TraceInfo, TrackInfo } from "../backend/types/trace";
import type { Tab } from "../model/tabs";
import type { Track, TrackForm } from "../model/tracks";
import type { Frame } from "./frame";
import type { Placed } from "./scene";

/** A slice under a point. */
export interface SliceHit {
  readonly track: Track; // where it lies
  readonly info: TrackInfo; // whose it is: the track's own, or a strip's
  readonly trace: number;
  readonly row: Row;
  readonly at: number; // in `row`
  readonly begin: number; // on the timeline: trace B's offset included
  readonly pixelNs: number;
}

export interface TrackRenderer extends TrackForm {
  /** What lies behind all lines of time: where the track lives. */
  drawGround?(frame: Frame, place: Placed): void;
  /** The slices of `info`, and what is known to be missing of it. */
  draw(frame: Frame, place: Placed, info: TrackInfo): void;
  /** What lies above all slices. */
  drawAbove?(frame: Frame, place: Placed): void;
  /** The lanes under a height on screen, the likeliest first; none: it is beside the track. */
  lanesAt(place: Placed, y: number): readonly number[];
  /** Left out: the trace's facts list its tracks. */
  readonly late?: LateTracks;
  /** What tells of its tracks in the lower half. */
  readonly panel?: { readonly tab: Tab; readonly Panel: ComponentType };
  /** Whether the server has tiles of it; left out: it does. */
  readonly tiles?: false;
  /** What the pointer shows of a slice. Left out, as the next one: it has none. */
  readonly Tip?: (props: { hit: SliceHit }) => JSX.Element;
  /** A click on a slice that stands for one thing alone. `all`: on everything that is like it. */
  click?(hit: SliceHit, all: boolean): void;
}

/** Tracks that are not among the trace's facts, and what they are made of. */
export interface LateTracks {
  readonly list: LateList<unknown>;
  /** Facts with a track for each that the list has. */
  add(info: TraceInfo, list: unknown): TraceInfo;
}

export const lateTracks = <Of>(list: LateList<Of>, add: (info: TraceInfo, list: Of) => TraceInfo): LateTracks => ({
  list,
  add: (info, made) => add(info, made as Of),
});

/** The lane of a track with a row for each. */
export function laneOfRow({ track, top }: Placed, y: number): readonly number[] {
  const lane = Math.floor((y - top - 2 - track.lead) / track.rowHeight);
  return lane >= 0 && lane < track.rows ? [lane] : [];
}

/** The lane of a track whose lanes differ in height. `laneOf`: where one is, from the first one's top. */
export function laneOfHeights({ track, top }: Placed, y: number, laneOf: LaneOf): readonly number[] {
  const { info } = track;
  if (!info) return [];
  for (let lane = 0; lane < info.lanes; ++lane) {
    const at = laneOf(info, lane);
    const from = y - top - 2 - at.y;
    if (from >= 0 && from <= at.height) return [lane];
  }
  return [];
}

type LaneOf = (info: TrackInfo, lane: number) => { y: number; height: number };
