// Locks: their tracks, what is said of those without one, and what lines are drawn of.
import { describe, expect, test } from "vitest";
import { traceFacts } from "../../src/backend/facts";
import { lockAnswers } from "../../src/backend/answers";
import { LOCKS } from "../../src/backend/late_lists";
import { rowOf, type Json } from "../../src/backend/rows";
import { lockLines, lockName } from "../../src/model/locks";
import { layoutTracks, NO_CHOICE, ROW } from "../../src/model/tracks";
import { KINDS } from "../../src/timeline/kinds";
import { laneOfLock, withLocks } from "../../src/timeline/track_locks";
import { sampleFacts } from "../sample";

const lockFacts = (answer: Json) => rowOf(answer, lockAnswers);

const list = LOCKS.read({
  holds_known: true,
  more_locks: 3,
  more_waits: 1,
  unnamed_waits: 2,
  locks: [
    {
      track: 7,
      process: 0,
      kind: "mutex",
      name: "ca\nche",
      lock: "0x10",
      waits: 2,
      total: 5e6,
      holder_lanes: 2,
      lanes: 5,
      left_out: 4,
    },
    { track: 8, process: 0, kind: "rwlock", lock: "0x20", waits: 1, total: 1000 },
  ],
});

describe("tracks of locks", () => {
  const info = withLocks(traceFacts(sampleFacts()), list);

  test("have their lock's name, or its address, and say what was left out", () => {
    const tracks = info.tracks.filter(({ kind }) => kind === "lock");
    expect(tracks.map(({ id, owner, lanes, holderLanes }) => [id, owner, lanes, holderLanes])).toEqual([
      [7, 0, 5, 2],
      [8, 1, 1, 1],
    ]);
    expect(lockName(list.locks[1]!)).toBe("rwlock 0x20");
    expect(tracks[0]!.name).not.toContain("\n");
    expect(tracks[0]!.words).toMatch(/^2 waits, 5\.000.ms; no room for 4$/);
    expect(tracks[1]!.words).toMatch(/^1 wait, /);
    expect(info.lockWords).toBe("2 of 5; the rest: 1 wait; for one that is not known: 2 waits");
    expect(withLocks(info, LOCKS.read({}))).toBe(info);
  });

  test("lie below the threads, can be folded, and give waits low lanes", () => {
    const all = layoutTracks([info], NO_CHOICE, { begin: 0, end: 1e9 }, KINDS).scrolled;
    const head = all.findIndex(({ kind }) => kind === "locks");
    expect(all.slice(head).map(({ key }) => key)).toEqual(["0:locks", "0:l0", "0:l1"]);
    expect(all.slice(0, head).every(({ kind }) => kind !== "lock")).toBe(true);
    const [, cache] = all.slice(head);
    const last = laneOfLock(cache!.info!, 4);
    expect(last.y + last.height).toBeLessThan(cache!.height);
    for (let lane = 1; lane < 5; ++lane) {
      const [before, at] = [laneOfLock(cache!.info!, lane - 1), laneOfLock(cache!.info!, lane)];
      expect(at.y).toBeGreaterThanOrEqual(before.y + before.height);
      expect(at.height).toBeLessThan(lane < 2 ? ROW : ROW / 2);
    }
    const folded = { ...NO_CHOICE, folded: new Set(["0:locks"]) };
    expect(
      layoutTracks([info], folded, { begin: 0, end: 1e9 }, KINDS).scrolled.filter(({ kind }) => kind === "lock"),
    ).toEqual([]);
  });
});

describe("lines", () => {
  const wait = { thread: 1, index: 5, begin: 100, duration: 50, depth: 3 };
  const owner = { tid: 9, thread: 2, call: { index: 4, function: 1, depth: 1 }, owners: 1 };

  test("go from a wait to the call of who has the lock, when it began", () => {
    const [line, ...more] = lockLines(lockFacts({ lock: 0, wait, owner }));
    expect(line).toEqual({ at: 100, from: { thread: 1, depth: 3 }, to: { thread: 2, depth: 1 } });
    expect(more).toEqual([]);
  });

  test("come to a holder from all that waited, not before it had the lock", () => {
    const found = lockFacts({
      lock: 0,
      held: { begin: 120, duration: 9 },
      owner,
      waiters: [wait, { ...wait, begin: 125 }],
    });
    expect(lockLines(found).map(({ at }) => at)).toEqual([120, 125]);
  });

  test("are none where it is not known who has it, or it is not in the trace", () => {
    expect(lockLines(lockFacts({ lock: 0, wait, owner: null }))).toEqual([]);
    expect(lockLines(lockFacts({ lock: 0, wait, owner: { tid: 9, thread: -1 } }))).toEqual([]);
    expect(lockFacts({}).owner).toBe(null);
  });
});
