// SPDX-License-Identifier: MIT
// The kinds of tracks that the page can show: a line for each.
import type { TraceInfo } from "../backend/types/trace";
import type { Tab } from "../model/tabs";
import type { TrackRenderer } from "./track_renderer";
import { cpuTracks } from "./track_cpus";
import { frameTracks } from "./track_frames";
import { lockTracks } from "./track_locks";
import { requestTracks } from "./track_requests";
import { sampleTracks } from "./track_samples";
import { stateTracks } from "./track_states";
import { threadTracks } from "./track_threads";
import { usageTracks, valueTracks } from "./track_values";

export const KINDS: readonly TrackRenderer[] = [
  frameTracks,
  threadTracks,
  stateTracks,
  sampleTracks,
  requestTracks,
  lockTracks,
  valueTracks,
  cpuTracks,
  usageTracks,
];

/** What the page asks for to make tracks of. */
export const LATE_LISTS = [...new Set(KINDS.flatMap(({ late }) => (late ? [late.list] : [])))];

/** A trace's facts with the tracks that came late. `made`: the lists, by their paths. */
export function withLate(info: TraceInfo, made: Readonly<Record<string, unknown>> = {}): TraceInfo {
  return KINDS.reduce((of, { late }) => {
    const list = late && made[late.list.path];
    return list === undefined ? of : late!.add(of, list);
  }, info);
}

/** The panel that a kind of track brings. */
export const panelOf = (tab: Tab) => KINDS.find(({ panel }) => panel?.tab === tab)?.panel?.Panel;

export const kindOf = (kind: string): TrackRenderer | undefined => KINDS.find((one) => one.kind === kind);
