// SPDX-License-Identifier: MIT
// Small pieces that panels share.
import { useEffect, useState } from "preact/hooks";
import { forms, split, visible } from "../model/names";
import { store, useStore } from "../model/store";
import { duration, exact, percent } from "../model/time";
import { costWords, recordedWords } from "../model/words";
import { currentScene } from "../timeline/steps";
import type { StateTimes } from "../backend/types/calls";
import type { Answer } from "./answers";

/** A function's colour as in the timeline. */
export function Swatch({ trace, func }: { trace: number; func: number }) {
  return <span class="swatch" style={{ background: currentScene()?.looks(trace)?.css[func] ?? "transparent" }} />;
}

export const TRACES = ["A", "B"];

/** Of two traces, which one something is of; nothing when there is one. */
export function Whose({ trace }: { trace: number }) {
  const { traces } = store.state;
  if (traces.length < 2) return null;
  return (
    <b class="whose" title={visible(traces[trace]?.info.name ?? "")}>
      {TRACES[trace]}
    </b>
  );
}

export function functionName(trace: number, func: number): string {
  return visible(store.state.traces[trace]?.info.functions[func]?.name ?? "?");
}

/** The longest form of a name that `letters` letters have room for; else its shortest. */
export function formFor(trace: number, func: number, letters: number): string {
  const all = forms(store.state.traces[trace]?.info.functions[func]?.name ?? "?");
  return visible(all.find((form) => form.length <= letters) ?? all[all.length - 1]!);
}

/** A name that keeps its end in sight when it is cut: the last part tells most. */
export function Name({ text }: { text: string }) {
  return (
    <span class="name" title={text}>
      <bdi>{text}</bdi>
    </span>
  );
}

/** A full name in a narrow place: its scope is cut first, the name itself last; the parameters go with what room is left. */
export function FullName({ text }: { text: string }) {
  const { scope, base, rest } = split(text);
  return (
    <span class="name parts">
      <bdi>
        <span class="scoped">
          {scope && <span class="scope">{scope}</span>}
          <span class="base">{base}</span>
        </span>
        {rest && <span class="rest">{rest}</span>}
      </bdi>
    </span>
  );
}

/** Beside sums of times of one trace, or of two that are compared: what they have in them. A click chooses. */
export function TimesChoice({ traces }: { traces: readonly number[] }) {
  const raw = useStore((s) => s.raw);
  const infos = [...new Set(traces)].flatMap((trace) => store.state.traces[trace]?.info ?? []);
  if (infos.length === 0) return null;
  const info = {
    processes: infos.flatMap(({ processes }) => processes),
    aggregated: infos.some(({ aggregated }) => aggregated),
  };
  // Where one of two does not know it, both are as recorded.
  const known = infos.length === 1 || info.processes.every(({ callCost }) => callCost > 0);
  const cost = known ? costWords(info) : undefined;
  if (cost === undefined) return <span class="quiet recorded">as recorded</span>;
  const words = raw && !info.aggregated ? recordedWords(info) : `without tracing’s ${cost} ns a call`;
  const title = "An estimate of the traced process, as karst report has it. The timeline is as recorded.";
  if (info.aggregated)
    return (
      <span class="quiet recorded" title={title}>
        {words}
      </span>
    );
  return (
    <button
      class="link quiet recorded"
      data-testid="times"
      aria-pressed={raw}
      title={`${title}\nClick: ${raw ? "without what tracing took" : "times as recorded"}`}
      onClick={() => store.set({ raw: !raw })}
    >
      {words}
    </button>
  );
}

/** A share as a bar behind a number. */
export function Bar({ share }: { share: number }) {
  return <span class="bar" style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }} />;
}

export function Empty({ children }: { children: preact.ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

/** A time by what the thread did, as a bar and in words. Colours as in the timeline, and always with their names. */
export function States({ times, label }: { times: StateTimes; label: string }) {
  const parts = [
    { name: "on CPU", kind: "running", ns: times.cpu },
    { name: "runnable", kind: "runnable", ns: times.runnable },
    { name: "blocked", kind: "blocked", ns: times.blocked },
    { name: "not known", kind: "unknown", ns: times.unknown },
  ].filter((part) => part.ns > 0);
  const sum = parts.reduce((total, part) => total + part.ns, 0);
  if (sum <= 0) return null;
  return (
    <div class="states" data-testid={`states-${label}`} aria-label={`${label} by state`}>
      <span class="states-bar" aria-hidden="true">
        {parts.map((part) => (
          <i class={`state ${part.kind}`} style={{ width: `${(part.ns / sum) * 100}%` }} />
        ))}
      </span>
      {parts.map((part) => (
        <span class="states-part" data-state={part.kind} data-ns={part.ns} title={exact(part.ns)}>
          <i class={`state ${part.kind}`} /> {part.name} {duration(part.ns)}{" "}
          <span class="quiet">{percent(part.ns / sum)}</span>
        </span>
      ))}
    </div>
  );
}

function waitingFor(share: number | undefined): string {
  if (store.state.traces.some((trace) => trace.info.reading)) return "This waits until the trace is read";
  return share === undefined ? "Adding up calls…" : `Adding up calls: ${percent(share)}`;
}

/** For as long as an answer is on its way: how far it is, and an end to it. Nothing is shown of quick ones. */
export function Waiting({ answer }: { answer: Pick<Answer<unknown>, "share" | "stop"> }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 350);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="waiting" role="status" data-testid="waiting">
      {late && (
        <>
          <progress max={1} value={answer.share} aria-label="Adding up calls" />
          <span>{waitingFor(answer.share)}</span>
          <button onClick={answer.stop}>Stop</button>
        </>
      )}
    </div>
  );
}

export function Failed({ message, again }: { message: string; again?: (() => void) | undefined }) {
  return (
    <div class="empty failed" role="alert">
      {message} {again && <button onClick={again}>Ask again</button>}
    </div>
  );
}
