// SPDX-License-Identifier: MIT
// The selected call: its times, where it comes from, what it called, how it compares with its sisters, its source.
import { hasValues } from "../backend/facts";
import type { CallInfo, CallLine } from "../backend/types/calls";
import { kOpenBegin, kOpenEnd } from "../backend/types/tiles";
import { fitSelection, goTo, highlight, moveTo, offsetOf, select, stepCall, toggleExplained } from "../model/actions";
import { readable, visible } from "../model/names";
import { store, useStore, type Selected, type State } from "../model/store";
import { count, duration, exact, percent } from "../model/time";
import { fit } from "../model/view";
import { asRecorded, recordedWords, sentence } from "../model/words";
import { endings } from "../timeline/endings";
import { ValueList } from "../timeline/value_list";
import { useAnswer } from "./answers";
import { ExplanationView } from "./explanation";
import { HistogramView } from "./histogram";
import { Icon } from "./icon";
import { MemoryView } from "./memory";
import { FlowsView } from "./flows";
import { HeldPanel, LockWaitView } from "./lock";
import {
  Bar,
  Empty,
  Failed,
  formFor,
  FullName,
  functionName,
  Name,
  States,
  Swatch,
  TimesChoice,
  Waiting,
  Whose,
} from "./parts";
import { SourceView } from "./source";

function Line({ at, call, depth, share }: { at: Selected; call: CallLine; depth: number; share: number }) {
  return (
    <button
      class="call-line"
      title={functionName(at.trace, call.function)}
      onClick={() => select({ ...at, index: call.index }, { ...call, depth }, { reveal: true })}
    >
      <Bar share={share} />
      <Swatch trace={at.trace} func={call.function} />
      <FullName text={formFor(at.trace, call.function, 40)} />
      {call.flags !== 0 && (
        <span class="mark" title={endings(call.flags).join(", ")}>
          {endings(call.flags)
            .map((words) => words.replace(/left by (an )?/, ""))
            .join(", ")}
        </span>
      )}
      <span class="num">{duration(call.duration)}</span>
    </button>
  );
}

function Facts({ at, call }: { at: Selected; call: CallInfo }) {
  const info = store.state.traces[at.trace]!.info;
  const { self, took } = call;
  const thread = info.threads[at.thread]!;
  const process = info.processes[thread.process];
  const words = endings(call.flags);
  const open = (call.flags & (kOpenBegin | kOpenEnd)) !== 0;
  const rows: [name: string, value: string, more: string, ns?: number][] = [
    [
      "Duration",
      `${open ? "at least " : ""}${asRecorded(info, call.duration)}`,
      `${exact(call.duration)}, ${recordedWords(info)}`,
      call.duration,
    ],
    [
      "Self",
      duration(self),
      `${exact(self)}: not in traced functions that it called` +
        (took === call.duration ? "" : ", nor in tracing, by an estimate"),
      self,
    ],
    ["Begin", duration(call.begin), `${exact(call.begin)} after the trace's first event`],
    ["Called", `${count(call.children)} directly, ${count(call.subtreeCalls)} in all`, ""],
    ["Thread", `${thread.name} · ${thread.tid}`, process ? `process ${process.name} ${process.pid}` : ""],
  ];
  if (took < call.duration)
    rows.splice(1, 0, [
      "Without tracing",
      `about ${duration(took)}`,
      `An estimate: tracing took some ${exact(call.duration - took)} of it. The timeline and the callers here have it as recorded.`,
      took,
    ]);
  return (
    <dl class="facts">
      {rows.map(([name, value, more, ns]) => (
        <div title={more}>
          <dt>{name}</dt>
          <dd data-fact={name.toLowerCase()} data-ns={ns}>
            {visible(value)}
            {name === "Self" && took > 0 && <span class="quiet"> {percent(self / took)}</span>}
          </dd>
        </div>
      ))}
      {words.length > 0 && (
        <div>
          <dt>Ends</dt>
          <dd class="mark">{words.join(", ")}</dd>
        </div>
      )}
    </dl>
  );
}

/** What the thread did during the call, and the longest of its waits. */
function Waits({ at, call }: { at: Selected; call: CallInfo }) {
  if (!call.states) return null;
  return (
    <div class="waits">
      <h3>On CPU or waiting</h3>
      <States times={call.states} label="total" />
      {call.selfStates && call.children > 0 && (
        <>
          <h3>Itself</h3>
          <States times={call.selfStates} label="self" />
        </>
      )}
      {call.waits.length > 0 && <h3>Longest waits</h3>}
      {call.waits.map((wait) => (
        <button
          class="call-line"
          data-testid="wait"
          title={wait.waker ? "Go to the call that woke it" : "Show it"}
          onClick={() =>
            wait.waker
              ? void goTo({ trace: at.trace, thread: wait.waker.thread, index: wait.waker.index })
              : moveTo(
                  fit(wait.begin + offsetOf(at.trace), wait.begin + wait.duration + offsetOf(at.trace), store.total),
                )
          }
        >
          <Bar share={call.duration > 0 ? (wait.duration + wait.runnable) / call.duration : 0} />
          <i class={`state ${wait.state === "blocked" ? "blocked" : "runnable"}`} />
          <Name text={visible(wait.words)} />
          <span class="num">{duration(wait.duration + wait.runnable)}</span>
        </button>
      ))}
    </div>
  );
}

/** Where one may go from a call. */
function Actions({ at, call }: { at: Selected; call: CallInfo }) {
  const marked = useStore((s) => s.highlight?.function === call.function && s.highlight.trace === at.trace);
  const baseline = useStore((s) => s.baseline);
  const explained = useStore((s) => s.explained);
  const isExplained = explained?.trace === at.trace && explained.thread === at.thread && explained.index === at.index;
  const open = (call.flags & (kOpenBegin | kOpenEnd)) !== 0;
  const isBaseline = baseline?.trace === at.trace && baseline.thread === at.thread && baseline.index === at.index;
  return (
    <div class="actions">
      <button
        aria-pressed={isExplained}
        disabled={open && !isExplained}
        onClick={() => toggleExplained(at)}
        title={open ? "How long it took is not known" : "Why it took longer than others of its function (e)"}
      >
        Explain
      </button>
      <button onClick={() => void stepCall("previous", "time")} title="Previous call of this function (p)">
        <Icon name="left" /> Previous
      </button>
      <button onClick={() => void stepCall("next", "time")} title="Next call of this function (n)">
        Next <Icon name="right" />
      </button>
      <button onClick={() => void stepCall("previous", "duration")} title="The next longer call (Shift+P)">
        <Icon name="up" /> Longer
      </button>
      <button onClick={() => void stepCall("next", "duration")} title="The next shorter call (Shift+N)">
        <Icon name="down" /> Shorter
      </button>
      <button onClick={fitSelection} title="Fit the call to the window (f)">
        <Icon name="fit" /> Fit
      </button>
      <button
        aria-pressed={marked}
        onClick={() => highlight(at.trace, marked ? null : call.function)}
        title="Highlight all calls of this function (h)"
      >
        Highlight
      </button>
      <button
        aria-pressed={isBaseline}
        onClick={() =>
          store.set(
            baseline && !isBaseline
              ? { tab: "compare" }
              : isBaseline
                ? { baseline: null }
                : { baseline: at, notice: "Kept for comparison. Now select the call to compare it with." },
          )
        }
        title="Compare two calls: press on the first, select the second, press again (c)"
      >
        <Icon name="compare" /> {isBaseline ? "Kept to compare" : baseline ? "Compare with kept" : "Compare"}
      </button>
    </div>
  );
}

function Callers({ at, call }: { at: Selected; call: CallInfo }) {
  return (
    <>
      <header class="pane-head">
        <h3>Callers</h3>
      </header>
      <div class="chain">
        {call.moreParents > 0 && <div class="quiet">{count(call.moreParents)} further out</div>}
        {call.parents.map((parent, i) => (
          <Line
            at={at}
            call={parent}
            depth={call.moreParents + i}
            share={parent.duration > 0 ? call.duration / parent.duration : 0}
          />
        ))}
        {call.parents.length === 0 && <div class="quiet">None: the outermost traced call.</div>}
      </div>
    </>
  );
}

function Callees({ at, call }: { at: Selected; call: CallInfo }) {
  const share = (ns: number) => (call.took > 0 ? ns / call.took : 0);
  return (
    <>
      <header class="pane-head">
        <h3>Called, by time</h3>
        {call.callees.length > 0 && <TimesChoice traces={[at.trace]} />}
      </header>
      <div class="callees" data-testid="callees">
        {call.callees.map((child) => (
          <button
            class="call-line"
            title={`${functionName(at.trace, child.function)}\nThe longest of ${count(child.calls)} calls is selected`}
            onClick={() => {
              const longest = call.longestChildren.find((c) => c.index === child.longest);
              if (longest)
                select({ ...at, index: longest.index }, { ...longest, depth: call.depth + 1 }, { reveal: true });
              else select({ ...at, index: child.longest });
            }}
          >
            <Bar share={share(child.total)} />
            <Swatch trace={at.trace} func={child.function} />
            <FullName text={formFor(at.trace, child.function, 40)} />
            <span class="quiet num">{count(child.calls)}×</span>
            <span class="num">{duration(child.total)}</span>
          </button>
        ))}
        {call.callees.length > 0 && (
          <div class="call-line self">
            <Bar share={share(call.self)} />
            <span class="name">itself</span>
            <span class="num">{duration(call.self)}</span>
          </div>
        )}
        {call.moreCallees > 0 && <div class="quiet">and {count(call.moreCallees)} functions more</div>}
        {call.callees.length === 0 && <div class="quiet">It called nothing that is traced.</div>}
      </div>
    </>
  );
}

function Details({ at, call }: { at: Selected; call: CallInfo }) {
  const loaded = store.state.traces[at.trace]!;
  const func = loaded.info.functions[call.function];
  const explained = useStore((s) => s.explained);
  const lock = useStore((s) => s.lock);
  const raw = useStore((s) => s.raw);
  const histogram = useAnswer(`${at.trace}.${call.function}.${raw}`, (signal) =>
    loaded.backend.histogram(call.function, raw, signal),
  );
  return (
    <div class="call" data-call={`${at.trace}.${call.thread}.${call.index}`}>
      <section class="call-main" aria-label="Call">
        <h2 class="call-name" title={func?.name} data-testid="call-name">
          <Whose trace={at.trace} />
          <Swatch trace={at.trace} func={call.function} />
          <bdi>{readable(func?.name ?? "?")}</bdi>
        </h2>
        <p class="sentence" data-testid="sentence">
          {sentence(loaded, call, histogram.value?.function === call.function ? histogram.value : undefined)}
        </p>
        <Actions at={at} call={call} />
        {hasValues(call) && <ValueList values={call} />}
        {lock?.facts.wait && isAt(lock, at) && <LockWaitView trace={at.trace} facts={lock.facts} />}
        <FlowsView at={at} />
        <Facts at={at} call={call} />
        <MemoryView at={at} />
        <Waits at={at} call={call} />
        {histogram.value && histogram.value.function === call.function && (
          <HistogramView
            histogram={histogram.value}
            marked={call.took}
            open={(call.flags & (kOpenBegin | kOpenEnd)) !== 0}
          />
        )}
        {!histogram.value && histogram.waiting && <Waiting answer={histogram} />}
        {histogram.error && <div class="quiet">{histogram.error}</div>}
      </section>
      <section class="call-family" aria-label="Callers and callees">
        <Callers at={at} call={call} />
        <Callees at={at} call={call} />
      </section>
      {explained && store.state.traces[explained.trace] ? (
        <ExplanationView of={explained} />
      ) : (
        <SourceView trace={at.trace} func={call.function} />
      )}
    </div>
  );
}

const isAt = ({ trace, facts: { wait } }: NonNullable<State["lock"]>, at: Selected) =>
  trace === at.trace && wait?.thread === at.thread && wait.index === at.index;

export function CallPanel() {
  const selected = useStore((s) => s.selected);
  const lock = useStore((s) => s.lock);
  const raw = useStore((s) => s.raw);
  const key = selected ? `${selected.trace}.${selected.thread}.${selected.index}.${raw}` : null;
  const answer = useAnswer(key, () =>
    store.state.traces[selected!.trace]!.backend.call({ thread: selected!.thread, index: selected!.index }, raw),
  );
  if (!selected && lock) return <HeldPanel trace={lock.trace} facts={lock.facts} />;
  if (!selected)
    return (
      <Empty>
        Click a call in the timeline, or press <kbd>Enter</kbd> there, to see its times, callers, callees and source.
      </Empty>
    );
  if (answer.error) return <Failed message={answer.error} />;
  if (!answer.value) return <Empty>…</Empty>;
  const { value } = answer;
  const at = { trace: selected.trace, thread: value.thread, index: value.index };
  return <Details at={at} call={value} />;
}
