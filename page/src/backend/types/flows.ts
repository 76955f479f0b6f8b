// Flows: what led to a call, and what it led to.

/** A step before or after a call's own. */
export interface FlowStep {
  thread: number;
  begin: number;
  end: number;
  /** Time between the two. */
  gap: number;
  /** Left out: it was in no call. */
  call?: { index: number; function: number; begin: number; duration: number; depth: number };
}

/** One that the call is a step of. */
export interface FlowOfCall {
  name: string;
  /** Its steps are a coroutine's resumptions. */
  coroutine: boolean;
  /** Which one this is, from 1 on, of how many. */
  step: number;
  steps: number;
  ended: boolean;
  /** Of this step. */
  begin: number;
  end: number;
  before: FlowStep | null;
  after: FlowStep | null;
}

export interface CallFlows {
  /** The first ones; `count` is of all. */
  flows: FlowOfCall[];
  count: number;
}
