// SPDX-License-Identifier: MIT
// Locks: who had one, in the colour of that thread, and below it who waited, in low lanes. Their tracks have tiles, but
// are listed when the page asks for them.
import { kOpenEnd, kSummed } from "../backend/types/tiles";
import type { LockList } from "../backend/answers";
import { LOCKS } from "../backend/late_lists";
import type { TraceInfo, TrackInfo } from "../backend/types/trace";
import { select } from "../model/actions";
import { lateOf } from "../model/late";
import { lockName, selectHolder } from "../model/locks";
import { visible } from "../model/names";
import { store } from "../model/store";
import { count, duration } from "../model/time";
import { ROW } from "../model/tracks";
import { SliceTip } from "./slice_tip";
import { laneOfHeights, lateTracks, type SliceHit, type TrackRenderer } from "./track_renderer";

const WAIT = 8; // height of a lane of waits
const AIR = 5;
const MOST_LANES = 64; // whatever an answer says
const LEAST = 34; // room for a name and a second line

const times = (n: number) => (n === 1 ? "1 wait" : `${count(n)} waits`);

/** A trace's facts with a track for each lock. */
export function withLocks(info: TraceInfo, list: LockList): TraceInfo {
  if (list.locks.length === 0) return info;
  const several = info.processes.length > 1;
  const tracks = list.locks.map((lock, owner): TrackInfo => {
    const process = info.processes[lock.process];
    const whose = several ? ` · ${process?.name ?? "?"} ${process?.pid ?? ""}` : "";
    const lanes = Math.min(MOST_LANES, Math.max(1, lock.lanes));
    const left = lock.leftOut > 0 ? `; no room for ${count(lock.leftOut)}` : "";
    return {
      ...{ id: lock.track, kind: "lock", name: `${lockName(lock)}${whose}`, owner },
      ...{ lanes, holderLanes: Math.min(lanes, Math.max(1, lock.holderLanes)) },
      words: `${times(lock.waits)}, ${duration(lock.total)}${left}`,
    };
  });
  const { moreLocks, moreWaits, unnamedWaits } = list;
  const parts = [`${tracks.length}`];
  if (moreLocks > 0) parts.push(` of ${count(tracks.length + moreLocks)}; the rest: ${times(moreWaits)}`);
  if (unnamedWaits > 0) parts.push(`; for one that is not known: ${times(unnamedWaits)}`);
  return { ...info, tracks: [...info.tracks, ...tracks], lockWords: parts.join("") };
}

/** Where a lane of a lock's track is, from the first one's top. */
export function laneOfLock(info: TrackInfo, lane: number): { y: number; height: number } {
  const holders = info.holderLanes ?? 1;
  return lane < holders
    ? { y: lane * ROW, height: ROW - 1 }
    : { y: holders * ROW + (lane - holders) * WAIT, height: WAIT - 2 };
}

function LockTip({ hit }: { hit: SliceHit }) {
  const { row, at, info } = hit;
  const trace = store.state.traces[hit.trace]!.info;
  const thread = trace.threads[row.func[at]!];
  const who = thread ? visible(`${thread.name || "thread"} ${thread.tid}`) : "";
  const holds = row.depth < (info.holderLanes ?? 1);
  const exact = lateOf(LOCKS, hit.trace)?.holdsKnown;
  const name = holds ? (who ? `${who} has it` : "who has it is not known") : `${who} waits`;
  return (
    <SliceTip hit={hit} name={name}>
      {holds && !exact && !(row.flags[at]! & kSummed) && (
        <span class="quiet"> · {who ? "as a wait for it began" : "no wait says"}</span>
      )}
      {holds && exact && !(row.flags[at]! & kSummed) && (row.flags[at]! & kOpenEnd) !== 0 && (
        <span class="mark"> · nobody saw its release</span>
      )}
      {!(row.flags[at]! & kSummed) && <span class="quiet"> · Click: {holds ? "who waited" : "who has it"}</span>}
    </SliceTip>
  );
}

export const lockTracks: TrackRenderer = {
  kind: "lock",
  late: lateTracks(LOCKS, withLocks),
  section: {
    title: "Locks",
    key: "locks",
    letter: "l",
    words: (n, info) => info.lockWords ?? `${n}`,
    height: (info) => {
      const { y, height } = laneOfLock(info, info.lanes - 1);
      return Math.max(LEAST, y + height + 1 + AIR);
    },
  },

  draw(frame, place, info) {
    const looks = frame.scene.threadLooks(place.track.trace)!;
    const holders = info.holderLanes ?? 1;
    frame.drawLanes(place, info, (lane) => {
      if (lane >= info.lanes) return undefined;
      const { y, height } = laneOfLock(info, lane);
      return { palette: looks.full, ...(lane < holders ? { looks } : {}), y: place.top + 2 + y, height };
    });
  },

  lanesAt: (place, y) => laneOfHeights(place, y, laneOfLock),

  Tip: LockTip,

  /** A holder tells who waited, a wait who had it. */
  click({ trace, row, at, info }) {
    if (row.depth < (info.holderLanes ?? 1)) void selectHolder(trace, info.owner, row.index[at]!);
    else select({ trace, thread: row.func[at]!, index: row.index[at]! });
  },
};
