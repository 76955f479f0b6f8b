// When nothing of a process was traced, and words for what was kept.
import type { MomentInfo, SwitchInfo } from "../backend/types";

/** Stretches in which all functions were switched off: from a switching off of all to the next switching on of any. */
export function offStretches(switches: readonly SwitchInfo[], end: number): [number, number][] {
  const found: [number, number][] = [];
  let since: number | undefined;
  for (const one of switches) {
    if (!one.on && one.all) since ??= one.begin;
    else if (one.on && since !== undefined) {
      found.push([since, one.end ?? end]);
      since = undefined;
    }
  }
  if (since !== undefined && since < end) found.push([since, end]);
  return found;
}

/** Of a switch of some functions only. */
export function switchWords({ functions, on, reason }: SwitchInfo): string {
  const which = functions === 1 ? "1 function" : `${functions.toLocaleString("en-US")} functions`;
  return `${which} ${on ? "traced again" : "not traced from here"}${reason === "budget" ? " (budget)" : ""}`;
}

export function momentWords({ kind, number, what }: MomentInfo): string {
  const name = { snapshot: "snapshot", signal: "signal", trigger: "trigger", slowest: "slowest", over: "over the limit" }[kind] ?? "kept";
  return what ? `${number}: ${name} ${what}` : `${number}: ${name}`;
}
