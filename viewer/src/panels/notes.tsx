// What is to be known of a trace before its picture is believed: what is missing in it; and what was kept of slow calls.
import type { MomentInfo } from "../backend/types";
import { bringTrack, moveTo, offsetOf } from "../model/actions";
import { readable, visible } from "../model/names";
import { store, useStore, type LoadedTrace } from "../model/store";
import { leftOut, leftOutWords, momentWords, offStretches, offWords } from "../model/switches";
import { count, duration } from "../model/time";
import { fit } from "../model/view";
import { Popover } from "./popover";

const MOST = 40; // lines of each kind

/** Shows a stretch of time; of a thread, if one is named. */
function show(trace: number, begin: number, end: number, thread?: number): void {
  const offset = offsetOf(trace);
  moveTo(fit(begin + offset, end + offset, store.total));
  if (thread !== undefined && thread >= 0) requestAnimationFrame(() => bringTrack(trace, thread));
}

interface Line {
  /** What is to be typed stands between bars; names of the trace's come only with `go`. */
  readonly words: string;
  readonly time?: string;
  readonly go?: () => void;
}

function Lines({ lines, close }: { lines: readonly Line[]; close: () => void }) {
  return (
    <>
      {lines.slice(0, MOST).map(({ words, time, go }) =>
        go ? (
          <button
            class="call-line note"
            onClick={() => {
              go();
              close();
            }}
          >
            <span class="name">{words}</span>
            <span class="num">{time}</span>
          </button>
        ) : (
          <p>{words.split("|").map((part, i) => (i % 2 === 1 ? <code>{part}</code> : part))}</p>
        ),
      )}
      {lines.length > MOST && <p class="quiet">and {count(lines.length - MOST)} more</p>}
    </>
  );
}

/** What is missing in a trace: in few words, and line by line. */
export function missing({ info }: LoadedTrace, trace: number): { short: string; lines: Line[] } | undefined {
  const sum = (of: (thread: (typeof info.threads)[number]) => number) =>
    info.threads.reduce((n, thread) => n + of(thread), 0);
  const overwritten = Math.floor(sum((thread) => thread.overwrittenEvents) / 2);
  const lost = sum((thread) => thread.lostEvents);
  const gaps = info.threads.flatMap((thread) =>
    thread.gaps.filter((gap) => gap.kind === "missing").map((gap) => ({ ...gap, thread })),
  );
  const lines: Line[] = [];
  if (overwritten > 0)
    lines.push({
      words: `About ${count(overwritten)} calls were overwritten: they are older than memory held. |karst run --memory| gives more of it.`,
    });
  if (lost > 0) lines.push({ words: `${count(lost)} events were lost.` });
  for (const gap of gaps)
    lines.push({
      words: `Records of ${visible(gap.thread.name)} are missing`,
      time: duration(gap.end - gap.begin),
      go: () => show(trace, gap.begin, gap.end, gap.thread.index),
    });
  for (const process of info.processes) {
    const of = info.processes.length > 1 ? `${visible(process.name)}: ` : "";
    const off = offStretches(process, 0, info.extent);
    const some = leftOut(process, 0, info.extent);
    for (const one of off)
      lines.push({
        words: `${of}${offWords(one.reason)}`,
        time: duration(one.end - one.begin),
        go: () => show(trace, one.begin, one.end),
      });
    for (const one of some)
      lines.push({
        words: `${of}${leftOutWords(one, (f) => readable(info.functions[f]?.name ?? "?"))}`,
        time: duration(one.end - one.begin),
        go: () => show(trace, one.begin, one.end),
      });
    if (process.switchCount > process.switches.length)
      lines.push({
        words: `${of}of ${count(process.switchCount)} switches of tracing only the first ${count(process.switches.length)} are shown; |karst info| has all.`,
      });
  }
  if (lines.length === 0) return undefined;
  return {
    short:
      overwritten > 0
        ? `${count(overwritten)} overwritten`
        : lost > 0 || gaps.length > 0
          ? "Records lost"
          : "Not all traced",
    lines,
  };
}

export function Missing() {
  const traces = useStore((s) => s.traces);
  const all = traces.flatMap((of, trace) => missing(of, trace) ?? []);
  if (all.length === 0) return null;
  return (
    <Popover icon="gap" label={all[0]!.short} title="What is not in this trace" testid="missing">
      {(close) => <Lines lines={all.flatMap(({ lines }) => lines)} close={close} />}
    </Popover>
  );
}

export function Kept() {
  const traces = useStore((s) => s.traces);
  const kept: { trace: number; moment: MomentInfo }[] = traces.flatMap(({ info }, trace) =>
    info.processes.flatMap(({ moments }) => moments.map((moment) => ({ trace, moment }))),
  );
  if (kept.length === 0) return null;
  const lines = kept.map(({ trace, moment }): Line => {
    const { begin, end, thread } = moment;
    return {
      words: momentWords(moment),
      time: end > begin ? duration(end - begin) : `at ${duration(begin)}`,
      go: () => show(trace, begin, end, thread),
    };
  });
  return (
    <Popover
      icon="kept"
      label={`${count(kept.length)} kept`}
      title="Slow calls, triggers and snapshots that were kept"
      testid="kept"
    >
      {(close) => <Lines lines={lines} close={close} />}
    </Popover>
  );
}
