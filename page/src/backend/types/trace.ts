// SPDX-License-Identifier: MIT
// What a trace is made of: its processes, threads, functions, tracks, and what is known of them.
import type {
  CpuInfo,
  Gap as GapFact,
  ProcessFact,
  StatesInfo,
  TaskInfo,
  ThreadFact,
  TraceFact,
  TrackFact,
} from "../answers";

export type { CpuInfo, MomentInfo, SampledInfo, StatesInfo, SwitchInfo, TaskInfo } from "../answers";

export interface Gap extends GapFact {
  kind: "overwritten" | "missing";
}

/** Its times are known: those of the trace stand for what is not. */
export type ThreadInfo = Omit<ThreadFact, "begin" | "end" | "first" | "last" | "gaps"> & {
  index: number; // in TraceInfo.threads
  begin: number;
  end: number;
  first: number;
  last: number;
  gaps: Gap[];
};

export interface ProcessInfo extends ProcessFact {
  index: number;
}

export interface FunctionInfo {
  name: string;
  module: string;
  file: string;
  line: number;
  calls: number;
  hasSource: boolean;
  /** 0xrrggbb: what the program gave a zone. */
  colour?: number;
}

/** What has lanes of its own in time: a thread, its states, a CPU. */
export interface TrackInfo extends TrackFact {
  /** Of requests: below each lane of those so many of threads that worked on them. */
  workLanes?: number;
  /** Of a lock: the first ones are who had it, the others who waited. */
  holderLanes?: number;
  /** Below its name. */
  words?: string;
}

/** What of api/trace is as it comes. */
type Facts = Pick<
  TraceFact,
  | "version"
  | "name"
  | "path"
  | "fileSize"
  | "complete"
  | "growing"
  | "traces"
  | "span"
  | "extent"
  | "calls"
  | "problems"
  | "sampled"
  | "usage"
  | "range"
>;

export interface TraceInfo extends Facts {
  resolutionNs: number;
  startRealtimeNs: string | null;
  processes: ProcessInfo[];
  threads: ThreadInfo[];
  tracks: TrackInfo[];
  /** By their numbers, with holes for those that do not occur. */
  functions: FunctionInfo[];
  /** Numbers of those whose values are noted. */
  valued: ReadonlySet<number>;
  /** It has records of memory. */
  hasMemory: boolean;
  /** Its calls lead to one another: api/flows. */
  hasFlows: boolean;
  /** Numbers of those that are waits for locks. */
  lockWaits: ReadonlySet<number>;
  canCut: boolean;
  /** There is a server that answers SQL. */
  answersSql: boolean;
  states: StatesInfo | null;
  tasks: TaskInfo[];
  cpus: CpuInfo[];
  /** It is still being read: most questions have to wait. */
  reading: boolean;
  /** What the heading of locks says of how many there are. */
  lockWords?: string;
  /** Names of frames without a track. */
  moreFrames?: number;
  /** An exported page that holds one picture and sums instead of each call. */
  aggregated: boolean;
}
