// SPDX-License-Identifier: MIT
// The page's state in one place, and who wants to know of changes. Components take what they need
// with useStore(); the timeline, which draws itself, subscribes.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Backend } from "../backend/types/backend";
import type { NoteGroup, NoteLine } from "../backend/types/notes";
import type { FlowAnswer } from "../backend/answers";
import type { LockAnswer } from "../backend/answers";
import type { Renewal } from "../backend/network";
import type { TimeOf } from "../backend/types/sums";
import type { TraceInfo } from "../backend/types/trace";
import type { Tab } from "./tabs";
import type { ThreadRanks, TrackChoice } from "./tracks";
import { NO_CHOICE } from "./tracks";
import type { View } from "./view";

export interface LoadedTrace {
  readonly number: number;
  readonly backend: Backend;
  readonly info: TraceInfo;
  /** It is a later reading of the trace before: what has the numbers that it had there. */
  readonly same?: Renewal["same"];
  /** What was before this time is not read, as the page follows; undefined: all is. */
  readonly from?: number;
}

export interface Selected {
  readonly trace: number;
  readonly thread: number;
  readonly index: number;
}

export interface Range {
  readonly begin: number;
  readonly end: number;
}

/** Times in the trace's own time. */
export interface Waking {
  readonly trace: number;
  readonly thread: number;
  readonly begin: number;
  readonly end: number;
  readonly words: string;
  readonly by: { readonly thread: number; readonly index: number; readonly depth: number };
}

export type ScopeKind = "all" | "view" | "range" | "thread" | "call";
export type SortKey =
  | "name"
  | "calls"
  | "total"
  | "self"
  | "min"
  | "mean"
  | "p50"
  | "p99"
  | "max"
  | "cpu"
  | "runnable"
  | "blocked"
  | "selfCpu"
  | "selfRunnable"
  | "selfBlocked";

export interface State {
  readonly traces: readonly LoadedTrace[];
  readonly view: View;
  readonly scroll: number;
  readonly choice: TrackChoice;
  readonly selected: Selected | null;
  /** Times of the selected call once known; the timeline draws and fits it. */
  readonly selectedSpan: (Range & { depth: number; function: number }) | null;
  /** Who ended the longest wait of the selected call, and when; null: nobody is known. */
  readonly waking: Waking | null;
  /** By trace, once an order needs them. */
  readonly ranks: readonly (ThreadRanks | undefined)[];
  /** The same: lists that kinds of tracks are made of, by their LateList.path, once they are there (late.ts). */
  readonly late: readonly (Readonly<Record<string, unknown>> | undefined)[];
  /** The selected wait, or who is selected that had a lock; null: neither is. */
  readonly lock: { readonly trace: number; readonly facts: LockAnswer } | null;
  /** Flows that the selected call is a step of; null: none are known. */
  readonly flows: { readonly at: Selected; readonly flows: FlowAnswer } | null;
  /** The chosen set of frames, and which of them; null: none was chosen. Its times once they are known. */
  readonly frame: { readonly trace: number; readonly set: number; readonly number?: number } | null;
  readonly frameSpan: Range | null;
  /** How long one may take, ms. */
  readonly frameTarget: number;
  /** The call that is explained, whichever is selected; null: none is. */
  readonly explained: Selected | null;
  /** What a panel points at in the timeline, in the trace's own time. */
  readonly pointed: (Range & { trace: number; thread: number; depth: number }) | null;
  readonly range: Range | null;
  readonly highlight: { readonly trace: number; readonly function: number } | null;
  readonly baseline: Selected | null;
  /** Time of trace B is moved by this much to the right. */
  readonly offset: number;
  readonly tab: Tab;
  readonly dockOpen: boolean;
  readonly dockHeight: number;
  readonly scope: ScopeKind;
  /** The same for the list of notes, which goes with the view unless one says otherwise. */
  readonly noteScope: ScopeKind;
  readonly noteFilter: string;
  readonly noteGroup: NoteGroup | "all";
  readonly newestNotes: boolean;
  /** The note that was chosen, in the trace's own time. */
  readonly note: (NoteLine & { readonly trace: number }) | null;
  /** Two traces: the table has the functions of both; else those of this one, when no call or function is chosen. */
  readonly bothTraces: boolean;
  readonly tableTrace: number;
  readonly inverted: boolean;
  /** Sums of times are as recorded, not without what tracing took. */
  readonly raw: boolean;
  /** What the flame graph adds up. */
  readonly flameBy: "wall" | TimeOf;
  /** Two sets of calls side by side in their order, or merged by path. */
  readonly comparing: "order" | "path";
  readonly sort: SortKey;
  readonly ascending: boolean;
  readonly filter: string;
  readonly measuring: boolean;
  readonly help: boolean;
  /** Where the selected call's menu stands in the window. */
  readonly menu: { readonly x: number; readonly y: number } | null;
  readonly theme: "auto" | "light" | "dark";
  readonly notice: string;
  /** While the trace is being read: how much of it is, 0 to 1. */
  readonly readShare: number;
  /** More was recorded since the trace was read. */
  readonly grown: boolean;
  /** What came is taken in again and again, and the newest part is shown. */
  readonly following: boolean;
  /** Meanwhile the view moves all the time: this is the part that was the newest when the trace was last read. */
  readonly followed: View | null;
  /** Which reading of the files this is; 0: there is one alone. */
  readonly generation: number;
  /** Grows when threads and functions get other numbers by a later reading; the same of calls. */
  readonly numbers: number;
  readonly callNumbers: number;
}

export const START: State = {
  traces: [],
  view: { begin: 0, span: 1e6 },
  scroll: 0,
  choice: NO_CHOICE,
  selected: null,
  selectedSpan: null,
  waking: null,
  ranks: [],
  late: [],
  lock: null,
  flows: null,
  frame: null,
  frameSpan: null,
  frameTarget: 16.7,
  explained: null,
  pointed: null,
  range: null,
  highlight: null,
  baseline: null,
  offset: 0,
  tab: "functions",
  dockOpen: true,
  dockHeight: 320,
  scope: "all",
  noteScope: "view",
  noteFilter: "",
  noteGroup: "all",
  newestNotes: false,
  note: null,
  bothTraces: false,
  tableTrace: 0,
  inverted: false,
  raw: false,
  flameBy: "wall",
  comparing: "order",
  sort: "self",
  ascending: false,
  filter: "",
  measuring: false,
  help: false,
  menu: null,
  theme: "auto",
  notice: "",
  readShare: 0,
  grown: false,
  following: false,
  followed: null,
  generation: 0,
  numbers: 0,
  callNumbers: 0,
};

export class Store {
  private listeners = new Set<() => void>();
  constructor(public state: State = START) {}

  set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The longest of the traces' spans: what the timeline covers. */
  get total(): number {
    return Math.max(
      20,
      ...this.state.traces.map((trace, i) => trace.info.extent + (i === 1 ? Math.max(0, this.state.offset) : 0)),
    );
  }
}

export const store = new Store();

/** Part of the state; the component renders again when that part changes. `pick` must not make new objects. */
export function useStore<T>(pick: (state: State) => T): T {
  const [, render] = useState(0);
  const value = pick(store.state);
  // What the last render picked and how: `pick` may depend on the component's own state.
  const latest = useRef({ pick, value });
  latest.current = { pick, value };
  useEffect(() => {
    const check = () => {
      const { pick: ask, value: last } = latest.current;
      if (!Object.is(ask(store.state), last)) render((n) => n + 1);
    };
    check();
    return store.subscribe(check);
  }, []);
  return value;
}
