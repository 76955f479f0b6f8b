// The kinds of tracks that the page can show: a line for each.
import type { TrackRenderer } from "./track_renderer";
import { cpuTracks } from "./track_cpus";
import { stateTracks } from "./track_states";
import { threadTracks } from "./track_threads";

export const KINDS: readonly TrackRenderer[] = [threadTracks, stateTracks, cpuTracks];

export const kindOf = (kind: string): TrackRenderer | undefined => KINDS.find((one) => one.kind === kind);
