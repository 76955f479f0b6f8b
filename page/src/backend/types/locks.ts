// SPDX-License-Identifier: MIT
// Locks: who had one, and who waited for it.

/** A lock that has a track. */
export interface LockInfo {
  /** Id of its track. */
  track: number;
  process: number;
  kind: string;
  /** Empty: it has none. */
  name: string;
  address: string;
  waits: number;
  total: number;
  longest: number;
  /** The first lanes are of holders, the others of waits. */
  holderLanes: number;
  lanes: number;
  /** Holders and waits for which there was no lane. */
  leftOut: number;
}

export interface LockList {
  /** The one waited for longest first. */
  locks: LockInfo[];
  /** Whether each hold is known; else only waits say who had a lock. */
  holdsKnown: boolean;
  /** Without a track: others, waits for them, and waits that do not say which lock. */
  moreLocks: number;
  moreWaits: number;
  unnamedWaits: number;
}

export interface LockWait {
  thread: number;
  index: number;
  begin: number;
  duration: number;
  /** Its end is not known. */
  open: boolean;
  depth: number;
  /** In the lock's track; left out: there was no room. */
  lane?: number;
}

/** A thread that has a lock, and what it did then. */
export interface LockOwner {
  tid: number;
  /** -1: it is not in the trace. */
  thread: number;
  /** Whether the trace has what it did then. */
  callKnown: boolean;
  /** Left out: it was in no traced call, or that is not known. */
  call?: { index: number; function: number; begin: number; duration: number; depth: number };
  /** How many had it, of readers. */
  owners: number;
  /** Place among the lock's holders; left out: it is not there. */
  holder?: number;
}

export interface LockHeld {
  holder: number;
  begin: number;
  duration: number;
  /** False: a wait says who had it, and nobody says until when. */
  exact: boolean;
  ended: string;
  lane?: number;
}

/** A wait and who had the lock as it began; or who had a lock for a while, and who waited meanwhile. */
export interface LockFacts {
  /** Place in LockList.locks. */
  lock: number;
  wait?: LockWait;
  held?: LockHeld;
  /** Null: not known. */
  owner: LockOwner | null;
  /** Of `held`: the first of them, and how many there are. */
  waiters: LockWait[];
  waiterCount: number;
}
