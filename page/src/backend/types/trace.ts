// What a trace is made of: its processes, threads, functions, tracks, and what is known of them.
import type { NoteGroup } from "./notes";

export interface Gap {
  begin: number;
  end: number;
  kind: "overwritten" | "missing";
  blocks: number;
}

export interface ThreadInfo {
  index: number; // in TraceInfo.threads
  process: number;
  tid: number;
  /** Its number is none of the kernel's: it is a fiber's lane. */
  fiber: boolean;
  name: string;
  /** Of those that the program put together. */
  group?: string;
  begin: number;
  end: number;
  first: number;
  last: number;
  exited: boolean;
  calls: number;
  maxDepth: number;
  overwrittenEvents: number;
  lostEvents: number;
  missingExits: number;
  gaps: Gap[];
  /** Whether it is known what the thread did beside its calls. */
  states: boolean;
  /** How many notes it has of each group; those that it has none of are left out. */
  notes: Readonly<Partial<Record<NoteGroup, number>>>;
  /** While the trace is being read: from when on its calls are not there yet. */
  unreadFrom?: number;
}

/** Functions were switched off or on. */
export interface SwitchInfo {
  begin: number;
  end: number | null; // under way when the trace was written
  all: boolean;
  /** Functions have numbers in their process; these have `ids` successive ones from `first` on, some of them spare. */
  first: number;
  ids: number;
  functions: number;
  on: boolean;
  reason: string;
  /** Some of them, in TraceInfo.functions. */
  named: number[];
}

/** What was asked to be kept: a slow call, what led to a trigger, a snapshot. */
export interface MomentInfo {
  number: number;
  kind: string;
  begin: number;
  end: number;
  thread: number; // -1: of all
  what: string;
  /** The call that it was, in its thread; left out: it was none, or is not in the trace. */
  index?: number;
  function?: number;
  /** Records that were overwritten before they could be kept. */
  lostEvents: number;
}

export interface ProcessInfo {
  index: number;
  pid: number;
  name: string;
  commandLine: string[];
  /** What the program says of itself as a whole. */
  appInfo: string[];
  executable: string;
  options: string;
  waitStatus: number | null;
  /** What tracing a call costs, ns; 0: not known. */
  callCost: number;
  damaged: boolean;
  overwrittenEvents: number;
  lostEvents: number;
  switches: SwitchInfo[];
  /** Of which `switches` are the first. */
  switchCount: number;
  moments: MomentInfo[];
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

/** What is known of thread states, and from whom. */
export interface StatesInfo {
  backend: string;
  wakes: boolean;
  others: boolean;
  syscalls: boolean;
  clockErrorNs: number;
  lostEvents: number;
  note: string;
}

/** A thread as the kernel knows it, of the run or not. */
export interface TaskInfo {
  tid: number;
  pid: number;
  name: string;
  ofRun: boolean;
  thread: number; // in TraceInfo.threads; -1: none
}

export interface CpuInfo {
  cpu: number;
  gaps: { begin: number; end: number; lost: number }[];
}

/** What has lanes of its own in time: a thread, its states, a CPU. */
export interface TrackInfo {
  id: number;
  kind: string;
  name: string;
  /** Place in TraceInfo.threads, of a CPU in TraceInfo.cpus. */
  owner: number;
  lanes: number;
  /** Of requests: below each lane of those so many of threads that worked on them. */
  workLanes?: number;
  /** Of a lock: the first ones are who had it, the others who waited. */
  holderLanes?: number;
  /** Below its name. */
  words?: string;
}

/** Of `karst run --sample`. */
export interface SampledInfo {
  /** CPU time that a sample stands for, ns. */
  period: number;
  samples: number;
  lost: number;
  kernel: boolean;
  functions: { name: string; module: string; file: string; line: number }[];
}

export interface TraceInfo {
  version: string;
  name: string;
  path: string;
  fileSize: number;
  complete: boolean;
  traces: number;
  span: number;
  /** When the last call ends: those that are running at the end last until their thread's. At least `span`. */
  extent: number;
  calls: number;
  resolutionNs: number;
  startRealtimeNs: string | null;
  problems: { message: string; count: number }[];
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
  /** What code was sampled in; null: nothing was sampled. */
  sampled: SampledInfo | null;
  /** Numbers of those that are waits for locks. */
  lockWaits: ReadonlySet<number>;
  canCut: boolean;
  states: StatesInfo | null;
  tasks: TaskInfo[];
  cpus: CpuInfo[];
  /** It is still being read: most questions have to wait. */
  reading?: true;
  /** An exported page: the range it holds. */
  range?: { begin: number; end: number };
  /** What the heading of locks says of how many there are. */
  lockWords?: string;
  /** Names of frames without a track. */
  moreFrames?: number;
  /** An exported page that holds one picture and sums instead of each call. */
  aggregated?: boolean;
}
