// SPDX-License-Identifier: MIT
// Sentences about calls: what was unusual about one, and what it waited for.
import type { CallInfo, Histogram, StateLine } from "../backend/types/calls";
import type { TraceInfo } from "../backend/types/trace";
import { forms, visible } from "./names";
import type { LoadedTrace } from "./store";
import { count, duration, percent } from "./time";

const shortest = (trace: LoadedTrace, func: number) =>
  visible(forms(trace.info.functions[func]?.name ?? "?").slice(-2)[0]!);

/** `12×`, `1.4×`: how many times what is usual. */
export function times(took: number, usual: number): string {
  const ratio = took / usual;
  return `${ratio >= 10 ? count(ratio) : ratio.toFixed(1)}×`;
}

/** `13` or `11 to 13`: what tracing took of each call, in ns; undefined: it is not known. */
export function costWords({ processes }: Pick<TraceInfo, "processes">): string | undefined {
  const costs = processes.map((process) => process.callCost).filter((ns) => ns > 0);
  if (costs.length === 0) return undefined;
  const [least, most] = [Math.min(...costs), Math.max(...costs)].map((ns) => ns.toFixed(0));
  return least === most ? least : `${least} to ${most}`;
}

/** A length as the timeline has it. Where what tracing took is known, other places have a shorter one: this says which. */
export function asRecorded(info: Pick<TraceInfo, "processes">, ns: number): string {
  return costWords(info) === undefined ? duration(ns) : `${duration(ns)} as recorded`;
}

/** A call in one line of text, as one puts it into a letter. */
export function callLine(
  info: TraceInfo,
  thread: number,
  span: { begin: number; end: number; function: number },
): string {
  const of = info.threads[thread]!;
  const words = [
    info.functions[span.function]?.name ?? "?",
    `at ${duration(span.begin)}`,
    asRecorded(info, span.end - span.begin),
    `in ${of.name || "thread"} ${of.tid}`,
  ];
  return visible(words.join(", ").replaceAll("\u202f", " "));
}

/** What times have in them that are as recorded. */
export function recordedWords(info: Pick<TraceInfo, "processes">): string {
  const cost = costWords(info);
  return cost === undefined ? "as recorded" : `as recorded, tracing’s ${cost} ns a call included`;
}

/** `18 ms in futex for worker-0 in Handle`, `19 ms for a CPU that mostly worker-0 had in Handle`. */
export function waitWords(trace: LoadedTrace, wait: StateLine): string {
  const parts = [duration(wait.duration + wait.runnable)];
  if (wait.state === "blocked" && wait.where) parts.push(`in ${wait.where}`);
  else if (wait.state !== "blocked") parts.push("for a CPU");
  const who = wait.by.replace(/^\d+ /, "");
  if (wait.state === "blocked" && who) parts.push(`for ${visible(who)}`);
  const [first] = wait.keptOffBy;
  if (wait.state !== "blocked" && first) {
    const mostly = first.duration < 0.95 * wait.duration ? "mostly " : "";
    parts.push(`that ${mostly}${visible(first.name.replace(/^\d+ /, ""))} had`);
    if (first.function !== null && first.function >= 0) parts.push(`in ${shortest(trace, first.function)}`);
  }
  if (wait.waker) parts.push(`in ${shortest(trace, wait.waker.function)}`);
  return parts.join(" ");
}

/** With the wait for a CPU that follows it; undefined: it did not wait. */
export function longestWait({ waits }: Pick<CallInfo, "waits">): StateLine | undefined {
  const length = (wait: StateLine) => wait.duration + wait.runnable;
  return waits.reduce<StateLine | undefined>(
    (best, wait) => (best && length(best) >= length(wait) ? best : wait),
    undefined,
  );
}

/** The answer in one sentence. `histogram`: of the call's function; undefined: not known yet. */
export function sentence(trace: LoadedTrace, call: CallInfo, histogram: Histogram | undefined): string {
  const parts: string[] = [];
  const { took, self } = call;
  const usual = histogram && histogram.calls - histogram.openCalls >= 10 ? histogram.p50 : null;
  if (usual !== null && usual > 0) {
    parts.push(
      took / usual >= 1.5
        ? `took ${times(took, usual)} the usual ${duration(usual)}`
        : `took ${duration(took)}, as usual (${duration(usual)})`,
    );
  } else parts.push(`took ${duration(took)}`);
  const wait = longestWait(call);
  const waited = wait ? wait.duration + wait.runnable : 0;
  const child = call.callees[0];
  const cpu = call.states?.cpu;
  if (wait && waited >= call.duration * 0.1) parts.push(`waited ${waitWords(trace, wait)}`);
  else if (cpu !== undefined && took > 0 && cpu >= took * 0.5) parts.push(`${percent(cpu / took)} of it on a CPU`);
  if (child && took > 0 && child.total >= took * 0.5)
    parts.push(`${percent(child.total / took)} of it in ${shortest(trace, child.function)}`);
  else if (took > 0 && self >= took * 0.5 && call.children > 0) parts.push(`${percent(self / took)} of it in itself`);
  const text = parts.join("; ");
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
}
