// Rows of Karst's answers. Made of their declarations (engine/api/relations.h) by docs_test, which fails when they differ;
// KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file anew. Times are ns.
import { flag, maybe, num, place, rowsIn, text, type Columns } from "./rows";

/** A row for each request that the program told of with karst.h. */
export interface Request {
  /** Whose request it is: in TraceInfo.processes. */
  process: number;
  /** Its number, as the program says it. */
  request: string;
  /** After the trace's first event. */
  begin: number;
  /** From the note that it begins to the note that it ends; without them from the first work on it or to the last ('<', '>'). */
  duration: number;
  /** Whether there is a note of its begin. */
  begun: boolean;
  /** Whether there is a note of its end. */
  ended: boolean;
  /** Time in which no thread worked on it: it waited in a queue. */
  idle: number;
  /** Of all threads together, while they said karst_request(ID). */
  work: number;
  /** Part of the work on a CPU. */
  cpu: number | null;
  /** Part of the work in which a thread had no CPU. */
  runnable: number | null;
  /** Part of the work in which a thread waited. */
  blocked: number | null;
  /** Part of the work of which the state is not known. */
  unknown: number | null;
  /** That worked on it. */
  threads: number;
  /** That began in that time. */
  calls: number;
  /** The greatest self time that a function has in it. */
  most: number;
  /** The function with that time: in TraceInfo.functions; -1: none. */
  mostIn: number;
}

export const requests: Columns<Request> = {
  process: ["process", place],
  request: ["request", text],
  begin: ["begin", num],
  duration: ["duration", num],
  begun: ["begun", flag],
  ended: ["ended", flag],
  idle: ["idle", num],
  work: ["work", num],
  cpu: ["cpu", maybe(num)],
  runnable: ["runnable", maybe(num)],
  blocked: ["blocked", maybe(num)],
  unknown: ["unknown", maybe(num)],
  threads: ["threads", num],
  calls: ["calls", num],
  most: ["most", num],
  mostIn: ["most_in", place],
};

/** A row for each process that has requests in time. */
export interface RequestTrack {
  /** Id of its track. */
  track: number;
  /** Whose requests they are: in TraceInfo.processes. */
  process: number;
  /** Requests that it is of. */
  count: number;
  /** Lanes of requests, below each of them work_lanes of threads that worked on those. */
  atOnce: number;
  /** Below each lane of requests. */
  workLanes: number;
  /** Requests and stretches of work for which there was no lane. */
  leftOut: number;
}

export const requestTracks: Columns<RequestTrack> = {
  track: ["track", num],
  process: ["process", place],
  count: ["count", num],
  atOnce: ["at_once", num],
  workLanes: ["work_lanes", num],
  leftOut: ["left_out", num],
};

/** What the program told of its requests. */
export interface RequestAnswer {
  /** How many there are. */
  count: number;
  /** The longest ones, the longest first. */
  requests: Request[];
  /** A track for each process. */
  tracks: RequestTrack[];
}

export const requestAnswers: Columns<RequestAnswer> = {
  count: ["count", num],
  requests: ["requests", rowsIn(() => requests)],
  tracks: ["tracks", rowsIn(() => requestTracks)],
};
