// SPDX-License-Identifier: MIT
// When nothing, or only some, of a process was traced, and words for that and for what was kept.
import type { MomentInfo, ProcessInfo, SwitchInfo } from "../backend/types/trace";
import { count } from "./time";

type Switching = Pick<ProcessInfo, "switches" | "switchCount">;

/** How far a process's switches are known: of thousands the server names the first. */
function knownUntil({ switches, switchCount }: Switching, end: number): number {
  return switches.length < switchCount ? Math.min(end, switches[switches.length - 1]?.begin ?? end) : end;
}

/** A stretch in which nothing was traced. */
export interface Off {
  readonly begin: number;
  readonly end: number;
  readonly reason: string;
}

/**
 * From a switching off of all functions to the next switching on of all; what first is switched on was off before, from
 * `begin` on. What some functions were switched to meanwhile counts again from then on.
 */
export function offStretches(process: Switching, begin: number, end: number): Off[] {
  const found: Off[] = [];
  const until = knownUntil(process, end);
  let since: { begin: number; reason: string } | undefined;
  let seen = false;
  for (const one of process.switches) {
    if (!one.all) continue;
    if (!one.on) since ??= one;
    else {
      since ??= seen ? undefined : { begin, reason: one.reason };
      if (since) found.push({ begin: since.begin, end: Math.min(one.end ?? until, until), reason: since.reason });
      since = undefined;
    }
    seen = true;
  }
  if (since && since.begin < until) found.push({ begin: since.begin, end: until, reason: since.reason });
  return found.filter((off) => off.end > off.begin);
}

/** A stretch in which some functions were not traced, always the same ones. */
export interface LeftOut {
  readonly begin: number;
  readonly end: number;
  readonly functions: number;
  /** Those known by name, in TraceInfo.functions. */
  readonly named: readonly number[];
  /** All by the budget. */
  readonly budget: boolean;
}

/** Functions [first, end) that are off. */
interface Part {
  readonly first: number;
  readonly end: number;
  readonly functions: number;
  readonly named: readonly number[];
  readonly budget: boolean;
}

const partOf = ({ first, ids, functions, named, reason }: SwitchInfo): Part => ({
  ...{ first, end: first + ids, functions, named, budget: reason === "budget" },
});

/** `list` without what is in `gone`. Whose names were which is not known: a rest keeps those that `gone` does not have. */
function without(list: readonly Part[], gone: Part): Part[] {
  return list.flatMap((part) => {
    if (part.end <= gone.first || part.first >= gone.end) return [part];
    const named = part.named.filter((f) => !gone.named.includes(f));
    const before = { ...part, end: gone.first, named };
    const after = { ...part, first: gone.end, named: before.first < before.end ? [] : named };
    return [before, after]
      .filter((rest) => rest.first < rest.end)
      .map((rest) => ({ ...rest, functions: Math.min(rest.functions, rest.end - rest.first) }));
  });
}

/** What is off at the start: a function that is switched on first was off before. */
function offAtStart(switches: readonly SwitchInfo[]): Part[] {
  let seen: Part[] = [];
  const off: Part[] = [];
  for (const one of switches) {
    if (one.all) continue;
    const part = partOf(one);
    if (one.on) off.push(...seen.reduce(without, [{ ...part, budget: false }]));
    seen = [...without(seen, part), part];
  }
  return off;
}

const MOST_NAMED = 4;
const known = new WeakMap<readonly SwitchInfo[], { begin: number; end: number; found: LeftOut[] }>();

/** Stretches of [begin, end] in which some functions were not traced, those of all functions left aside. Remembered. */
export function leftOut(process: Switching, begin: number, end: number): readonly LeftOut[] {
  const { switches } = process;
  const before = known.get(switches);
  if (before?.end === end && before.begin === begin) return before.found;
  const found: LeftOut[] = [];
  const until = knownUntil(process, end);
  let off = offAtStart(switches);
  let since = begin;
  const close = (at: number) => {
    if (off.length > 0 && at > since)
      found.push({
        begin: since,
        end: at,
        functions: off.reduce((sum, part) => sum + part.functions, 0),
        named: [...new Set(off.flatMap((part) => part.named))].slice(0, MOST_NAMED),
        budget: off.every((part) => part.budget),
      });
    since = Math.max(since, at);
  };
  for (const one of switches) {
    if (one.all) continue;
    // While functions are being switched on they are not traced yet.
    close(Math.min(one.on ? (one.end ?? until) : one.begin, until));
    const part = partOf(one);
    off = without(off, part);
    if (!one.on) off.push(part);
  }
  close(until);
  known.set(switches, { begin, end, found });
  return found;
}

/** Why all tracing was off. */
export const offWords = (reason: string): string =>
  ({ timer: "tracing was switched off: its time was up", unknown: "not known what was traced: too many switches" })[
    reason
  ] ?? "tracing was switched off";

const functionsWord = (n: number) => (n === 1 ? "1 function" : `${count(n)} functions`);

/** `1 function left out by the budget: hot`. `name` gives a function's name. */
export function leftOutWords({ functions, named, budget }: LeftOut, name: (func: number) => string): string {
  const more = functions - named.length;
  const names =
    named.length === 0 ? "" : `: ${named.map(name).join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
  return `${functionsWord(functions)} ${budget ? "left out by the budget" : "switched off"}${names}`;
}

/** Words for a gap in a thread's history. */
export function gapWords(kind: "overwritten" | "missing"): string {
  return kind === "overwritten" ? "overwritten: older than memory held" : "lost: records are missing here";
}

export function momentWords({ kind, number, what }: Pick<MomentInfo, "kind" | "number" | "what">): string {
  const name =
    {
      snapshot: "snapshot",
      signal: "signal",
      trigger: "trigger",
      slowest: "slowest",
      over: "over the limit",
      crash: "crash",
    }[kind] ?? "kept";
  return what ? `${number}: ${name} ${what}` : `${number}: ${name}`;
}
