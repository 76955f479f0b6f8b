// SPDX-License-Identifier: MIT
// The address holds what is seen: zoom, selection, filters. A link or a reload shows the same again.
import { ORDERS } from "./tracks";
import { NOTE_GROUPS } from "../backend/protocol";
import type { ScopeKind, Selected, SortKey, State } from "./store";
import { TABS, type Tab } from "./tabs";

const SCOPES: readonly ScopeKind[] = ["all", "view", "range", "thread", "call"];
const SORTS: readonly SortKey[] = [
  "name",
  "calls",
  "total",
  "self",
  "min",
  "mean",
  "p50",
  "p99",
  "max",
  "cpu",
  "runnable",
  "blocked",
  "selfCpu",
  "selfRunnable",
  "selfBlocked",
];

const round = (ns: number) => String(Number(ns.toFixed(3)));
const call = (at: Selected) => `${at.trace}.${at.thread}.${at.index}`;

/** What a fresh page shows in its dock: of two traces, what differs. */
export const firstTab = (traces: State["traces"]): Tab => (traces.length > 1 ? "compare" : "functions");

/** The part after `#`. Only what differs from a fresh page is in it. */
export function toHash(state: State): string {
  const parts: [string, string][] = [["t", `${round(state.view.begin)}+${round(state.view.span)}`]];
  const add = (key: string, value: string | false | null) => {
    if (value !== false && value !== null && value !== "") parts.push([key, value]);
  };
  add("y", state.scroll > 0 && String(Math.round(state.scroll)));
  add("sel", state.selected && call(state.selected));
  add("frame", state.frame && `${state.frame.trace}.${state.frame.set}.${state.frame.number ?? ""}`);
  add("range", state.range && `${round(state.range.begin)}+${round(state.range.end - state.range.begin)}`);
  add("func", state.highlight && `${state.highlight.trace}.${state.highlight.function}`);
  add("base", state.baseline && call(state.baseline));
  add("why", state.explained && call(state.explained));
  add("offset", state.offset !== 0 && round(state.offset));
  add("tab", state.tab !== firstTab(state.traces) && state.tab);
  add("dock", !state.dockOpen && "0");
  add("of", state.scope !== "all" && state.scope);
  add("notesof", state.noteScope !== "view" && state.noteScope);
  add("nq", state.noteFilter);
  add("nkind", state.noteGroup !== "all" && state.noteGroup);
  add("nlast", state.newestNotes && "1");
  add("up", state.inverted && "1");
  add("raw", state.raw && "1");
  add("by", state.flameBy !== "wall" && state.flameBy);
  add("cmp", state.comparing !== "order" && state.comparing);
  add("sort", (state.sort !== "self" || state.ascending) && `${state.ascending ? "+" : "-"}${state.sort}`);
  add("q", state.filter);
  add("threads", state.choice.filter);
  add("order", state.choice.order !== "trace" && state.choice.order);
  add("idle", state.choice.hideIdle && "0");
  add("pin", [...state.choice.pinned].join(","));
  add("fold", [...state.choice.folded].join(","));
  return parts
    .map(
      ([key, value]) =>
        `${key}=${encodeURIComponent(value).replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%2B/g, "+")}`,
    )
    .join("&");
}

function numbers(text: string, separator: string, n: number): number[] | undefined {
  const parts = text.split(separator);
  // A minus in front belongs to the number.
  const values = parts.map(Number);
  return values.length === n && parts.every((p) => p !== "") && values.every(Number.isFinite) ? values : undefined;
}

function callOf(text: string): Selected | undefined {
  const [trace, thread, index] = numbers(text, ".", 3) ?? [];
  const whole = [trace, thread, index].every((n) => n !== undefined && Number.isInteger(n) && n >= 0);
  return whole ? { trace: trace!, thread: thread!, index: index! } : undefined;
}

/** A set of frames, and which of them if it says so. */
function frameOf(text: string): State["frame"] {
  const found = /^(\d{1,9})\.(\d{1,9})\.(\d{1,15})?$/.exec(text);
  if (!found) return null;
  const [trace, set] = [Number(found[1]), Number(found[2])];
  return found[3] === undefined ? { trace, set } : { trace, set, number: Number(found[3]) };
}

function one<T extends string>(text: string, of: readonly T[]): T | undefined {
  return of.find((value) => value === text);
}

const keys = (text: string) => new Set(text.split(",").filter((key) => /^\d+:([a-z]?\d+|[a-z]{2,})$/.test(key)));

/** What an address says; what is wrong in it is left out. */
export function fromHash(hash: string, start: State): Partial<State> {
  const change: { -readonly [K in keyof State]?: State[K] } = {};
  let choice = start.choice;
  for (const part of hash.replace(/^#/, "").split("&")) {
    const equals = part.indexOf("=");
    if (equals < 0) continue;
    let value: string;
    try {
      value = decodeURIComponent(part.slice(equals + 1));
    } catch {
      continue;
    }
    switch (part.slice(0, equals)) {
      case "t": {
        const [begin, span] = numbers(value, "+", 2) ?? [];
        if (begin !== undefined && span !== undefined && span > 0) change.view = { begin, span };
        break;
      }
      case "y":
        change.scroll = Math.max(0, Number(value) || 0);
        break;
      case "sel":
        change.selected = callOf(value) ?? null;
        break;
      case "frame":
        change.frame = frameOf(value);
        break;
      case "base":
        change.baseline = callOf(value) ?? null;
        break;
      case "why":
        change.explained = callOf(value) ?? null;
        break;
      case "range": {
        const [begin, length] = numbers(value, "+", 2) ?? [];
        if (begin !== undefined && length !== undefined && length >= 0) change.range = { begin, end: begin + length };
        break;
      }
      case "func": {
        const [trace, func] = numbers(value, ".", 2) ?? [];
        if (trace !== undefined && func !== undefined && func >= 0) change.highlight = { trace, function: func };
        break;
      }
      case "fn": {
        // Addresses of older pages count only the functions that occur.
        const [trace = -1, rank = -1] = numbers(value, ".", 2) ?? [];
        const func = Object.keys(start.traces[trace]?.info.functions ?? {})[rank];
        if (func !== undefined) change.highlight = { trace, function: Number(func) };
        break;
      }
      case "offset":
        change.offset = Number(value) || 0;
        break;
      case "tab":
        change.tab = TABS.find(({ id }) => id === value)?.id ?? start.tab;
        break;
      case "dock":
        change.dockOpen = value !== "0";
        break;
      case "of":
        change.scope = one(value, SCOPES) ?? start.scope;
        break;
      case "notesof":
        change.noteScope = one(value, SCOPES) ?? start.noteScope;
        break;
      case "nq":
        change.noteFilter = value;
        break;
      case "nkind":
        change.noteGroup = one(value, NOTE_GROUPS) ?? "all";
        break;
      case "nlast":
        change.newestNotes = value === "1";
        break;
      case "up":
        change.inverted = value === "1";
        break;
      case "raw":
        change.raw = value === "1";
        break;
      case "by":
        change.flameBy = one(value, ["wall", "cpu", "runnable", "blocked"]) ?? "wall";
        break;
      case "cmp":
        change.comparing = value === "path" ? "path" : "order";
        break;
      case "sort":
        change.sort = one(value.slice(1), SORTS) ?? start.sort;
        change.ascending = value.startsWith("+");
        break;
      case "q":
        change.filter = value;
        break;
      case "threads":
        choice = { ...choice, filter: value };
        break;
      case "order":
        choice = {
          ...choice,
          order:
            one(
              value,
              ORDERS.map((o) => o.id),
            ) ?? "trace",
        };
        break;
      case "idle":
        choice = { ...choice, hideIdle: value === "0" };
        break;
      case "pin":
        choice = { ...choice, pinned: keys(value) };
        break;
      case "fold":
        choice = { ...choice, folded: keys(value) };
        break;
    }
  }
  change.choice = choice;
  return change;
}
