// SPDX-License-Identifier: MIT
// The lists that the page asks for late (model/late.ts): where each comes from, and which traces may have it.
import { frameLists, lockLists, type FrameList, type LockList, type RequestAnswer } from "./answers";
import { object, plotFacts, requestFacts, says } from "./facts";
import { rowOf } from "./rows";
import type { LateList } from "./types/late";
import type { PlotInfo } from "./types/notes";

export const LOCKS: LateList<LockList> = {
  path: "locks",
  read: (answer) => rowOf(object(answer), lockLists),
  has: (info) => info.lockWaits.size > 0,
};

export const FRAMES: LateList<FrameList> = {
  path: "frames",
  read: (answer) => rowOf(object(answer), frameLists),
  has: (info) => says(info, "frame"),
};

export const REQUESTS: LateList<RequestAnswer> = {
  path: "requests",
  read: requestFacts,
  has: (info) => says(info, "request"),
};

export const PLOTS: LateList<PlotInfo[]> = {
  path: "plots",
  read: plotFacts,
  has: (info) => info.usage || says(info, "value", "frame", "record"),
};
