// SPDX-License-Identifier: MIT
// Answers about locks to the page's own types.
import { callOf, maybe, num, object, objects, optional, text, type Json } from "./facts";
import type { LateList } from "./types/late";
import type { LockFacts, LockHeld, LockList, LockOwner, LockWait } from "./types/locks";

const MOST_LANES = 64;

export function lockList(answer: Json): LockList {
  const json = object(answer);
  return {
    locks: objects(json.locks).map((lock) => {
      const lanes = Math.min(MOST_LANES, Math.max(1, num(lock.lanes, 1)));
      return {
        ...{ track: num(lock.track, -1), process: num(lock.process), kind: text(lock.kind), name: text(lock.name) },
        ...{ address: text(lock.lock), waits: num(lock.waits), total: num(lock.total), longest: num(lock.longest) },
        ...{ holderLanes: Math.min(lanes, Math.max(1, num(lock.holder_lanes, 1))), lanes, leftOut: num(lock.left_out) },
      };
    }),
    holdsKnown: json.holds_known === true,
    moreLocks: num(json.more_locks),
    moreWaits: num(json.more_waits),
    unnamedWaits: num(json.unnamed_waits),
  };
}

export const LOCKS: LateList<LockList> = {
  path: "locks",
  read: lockList,
  has: (info) => info.lockWaits.size > 0,
};

const lane = (json: Json) => optional("lane", maybe(json.lane) ?? undefined);

function lockWait(json: Json): LockWait {
  return {
    ...{ thread: num(json.thread, -1), index: num(json.index), begin: num(json.begin), duration: num(json.duration) },
    ...{ open: json.open === true, depth: num(json.depth), ...lane(json) },
  };
}

function lockHeld(json: Json): LockHeld {
  return {
    ...{ holder: num(json.holder), begin: num(json.begin), duration: num(json.duration) },
    ...{ exact: json.exact === true, ended: text(json.ended), ...lane(json) },
  };
}

function lockOwner(json: Json): LockOwner {
  return {
    ...{ tid: num(json.tid), thread: num(json.thread, -1), owners: num(json.owners, 1) },
    ...{ callKnown: json.call_known !== false, ...optional("call", callOf(json)) },
    ...optional("holder", maybe(json.holder) ?? undefined),
  };
}

export function lockFacts(answer: Json): LockFacts {
  const json = object(answer);
  return {
    lock: num(json.lock, -1),
    ...optional("wait", json.wait ? lockWait(object(json.wait)) : undefined),
    ...optional("held", json.held ? lockHeld(object(json.held)) : undefined),
    owner: json.holder ? lockOwner(object(json.holder)) : null,
    waiters: objects(json.waiters).map(lockWait),
    waiterCount: num(json.waiter_count),
  };
}
