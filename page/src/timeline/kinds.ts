// The kinds of tracks that the page can show: a line for each.
import type { TrackRenderer } from "./track_renderer";
import { cpuTracks } from "./track_cpus";
import { frameTracks } from "./track_frames";
import { lockTracks } from "./track_locks";
import { requestTracks } from "./track_requests";
import { sampleTracks } from "./track_samples";
import { stateTracks } from "./track_states";
import { threadTracks } from "./track_threads";
import { valueTracks } from "./track_values";

export const KINDS: readonly TrackRenderer[] = [
  frameTracks,
  threadTracks,
  stateTracks,
  sampleTracks,
  requestTracks,
  lockTracks,
  valueTracks,
  cpuTracks,
];

export const kindOf = (kind: string): TrackRenderer | undefined => KINDS.find((one) => one.kind === kind);
