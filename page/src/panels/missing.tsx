// SPDX-License-Identifier: MIT
// What is to be known of a trace before its picture is believed: what is missing in it; and what was kept of slow calls.
import type { MomentInfo } from "../backend/types/trace";
import { bringTrack, moveTo, offsetOf } from "../model/actions";
import { attempt } from "../model/attempt";
import { forms, readable, threadName, visible } from "../model/names";
import { keptMoments, openMoment } from "../model/opening";
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
        words:
          `${of}of ${count(process.switchCount)} switches of tracing only the first ` +
          `${count(process.switches.length)} are shown; |karst info| has all.`,
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

/** A kept call, and others of the same thread that overlap it: one slow moment, kept for several reasons. */
interface KeptGroup {
  readonly trace: number;
  readonly moments: readonly MomentInfo[];
}

/** The slowest first; those that overlap in the same thread are one group. */
export function keptGroups(traces: readonly Pick<LoadedTrace, "info">[]): KeptGroup[] {
  const groups: { trace: number; moments: MomentInfo[]; begin: number; end: number }[] = [];
  const of = (m: MomentInfo) => m.end - m.begin;
  traces.forEach(({ info }, trace) => {
    for (const moment of keptMoments(info)) {
      const group = groups.find(
        (g) =>
          g.trace === trace && g.moments[0]!.thread === moment.thread && moment.begin <= g.end && moment.end >= g.begin,
      );
      if (group) group.moments.push(moment);
      else groups.push({ trace, moments: [moment], begin: moment.begin, end: moment.end });
    }
  });
  return groups.sort((a, b) => of(b.moments[0]!) - of(a.moments[0]!));
}

function KeptLine({
  trace,
  moment,
  inner,
  close,
}: {
  trace: number;
  moment: MomentInfo;
  inner: boolean;
  close: () => void;
}) {
  const { info } = store.state.traces[trace]!;
  const { begin, end, thread, function: func } = moment;
  return (
    <button
      class={`call-line note kept${inner ? " inner" : ""}`}
      title={func === undefined ? "Show this moment" : "Select this call"}
      onClick={() => {
        void attempt(() => openMoment(trace, moment));
        close();
      }}
    >
      <span class="name">
        {moment.number}: {func !== null && <b>{visible(forms(info.functions[func]?.name ?? "?").slice(-2)[0]!)} </b>}
        {thread >= 0 && `in ${threadName(info, thread)} `}
        <span class="quiet">{momentWords(moment).replace(/^\d+: /, "")}</span>
      </span>
      <span class="num">{end > begin ? duration(end - begin) : `at ${duration(begin)}`}</span>
    </button>
  );
}

export function Kept() {
  const traces = useStore((s) => s.traces);
  const groups = keptGroups(traces);
  if (groups.length === 0) return null;
  const all = groups.reduce((n, { moments }) => n + moments.length, 0);
  return (
    <Popover
      icon="kept"
      label={`${count(all)} kept`}
      title="Slow calls, triggers and snapshots that were kept"
      testid="kept"
    >
      {(close) => (
        <>
          {groups
            .slice(0, MOST)
            .map(({ trace, moments }) =>
              moments
                .slice(0, MOST)
                .map((moment, i) => <KeptLine {...{ trace, moment, close }} inner={i > 0} key={moment.number} />),
            )}
          {groups.length > MOST && <p class="quiet">and {count(groups.length - MOST)} more</p>}
        </>
      )}
    </Popover>
  );
}
