// SPDX-License-Identifier: MIT
// Slow calls: a line for each function and callee that its calls were slow for; beside it the calls of
// the chosen function by duration, which a click on the histogram limits.
import { useEffect, useState } from "preact/hooks";
import type { LeftCall, SlowCall } from "../backend/answers";
import { highlight, moveTo, offsetOf, scrollTrack, scopeOf, select } from "../model/actions";
import { openLeft, openOutlier } from "../model/opening";
import { readable, threadName, visible } from "../model/names";
import { store, useStore } from "../model/store";
import { count, duration } from "../model/time";
import { fitThird } from "../model/view";
import { asRecorded, times } from "../model/words";
import { askValues, callKey, valueWords } from "../model/values";
import { useAnswer } from "./answers";
import { HistogramView } from "./histogram";
import { TimesChoice, Bar, Empty, Failed, formFor, FullName, functionName, Swatch, Waiting, Whose } from "./parts";
import { ScopeChoice, scopeIn, TraceChoice, useBoth, useScope } from "./scope";

const LISTED = 200;

/** What a slow call was slow for, in few words. */
function because(t: number, call: SlowCall): string {
  const words: string[] = [];
  const last = call.path.at(-1);
  if (last) words.push(`in ${formFor(t, last.function, 30)}`);
  if (call.wait !== null) words.push(`${duration(call.wait)} ${visible(call.waitWords ?? "")}`);
  else if (call.cpu) words.push(`${duration(call.cpu)} on a CPU`);
  return words.join("; ");
}

function Slow({ call, trace, most }: { call: SlowCall; trace: number; most: number }) {
  const loaded = store.state.traces[trace]!;
  const selected = useStore((s) => s.selected);
  const on = selected?.trace === trace && selected.thread === call.thread && selected.index === call.index;
  const why = because(trace, call);
  return (
    <button
      class={`slow-line${on ? " on" : ""}`}
      aria-pressed={on}
      data-testid="slow"
      data-function={functionName(trace, call.function)}
      title={`${functionName(trace, call.function)}\n${why}\nClick: show this call`}
      onClick={() => openOutlier(trace, call)}
    >
      <Bar share={most > 0 ? (call.duration - call.usual) / most : 0} />
      <span>
        <Whose trace={trace} /> <Swatch trace={trace} func={call.function} />
      </span>
      <FullName text={readable(loaded.info.functions[call.function]?.name ?? "?")} />
      <span class="num">{duration(call.duration)}</span>
      <span class="num times" title={`usually ${duration(call.usual)}`}>
        {times(call.duration, call.usual)} usual
      </span>
      <span class="quiet slow-where">
        {duration(call.duration) !== duration(call.recorded) && `${asRecorded(loaded.info, call.recorded)}, `}
        at {duration(call.begin)} in {threadName(loaded.info, call.thread)}
        {call.suchCalls > 1 && `, ${count(call.suchCalls - 1)} more such ${call.suchCalls === 2 ? "call" : "calls"}`}
      </span>
      <span class="quiet slow-why">{why}</span>
    </button>
  );
}

/** A call whose end is not known: it jumped to code that is not traced. */
function Left({ call, trace }: { call: LeftCall; trace: number }) {
  const loaded = store.state.traces[trace]!;
  const selected = useStore((s) => s.selected);
  const on = selected?.trace === trace && selected.thread === call.thread && selected.index === call.index;
  const name = functionName(trace, call.function);
  const why = call.wait !== null ? `${duration(call.wait)} ${visible(call.waitWords ?? "")}` : "";
  return (
    <button
      class={`slow-line${on ? " on" : ""}`}
      aria-pressed={on}
      data-testid="left"
      data-function={name}
      title={`${name}\nLeft by a tail call into code that is not traced; its thread’s next event came then.\nClick: show this call`}
      onClick={() => openLeft(trace, call)}
    >
      <Bar share={0} />
      <span>
        <Whose trace={trace} /> <Swatch trace={trace} func={call.function} />
      </span>
      <FullName text={readable(loaded.info.functions[call.function]?.name ?? "?")} />
      <span class="num">up to {duration(call.most)}</span>
      <span class="num times" title={`usually ${duration(call.usual)} at most`}>
        left
      </span>
      <span class="quiet slow-where">
        {duration(call.recorded)} until it was left by a tail call, at {duration(call.begin)} in{" "}
        {threadName(loaded.info, call.thread)}
        {call.calls > 1 && `, ${count(call.calls)} calls left so`}
      </span>
      <span class="quiet slow-why">{why}</span>
    </button>
  );
}

/** The calls of one function, the longest first; of one bar of its histogram when that was clicked. */
function CallsByDuration({ trace, func }: { trace: number; func: number }) {
  const { backend, info } = store.state.traces[trace]!;
  const selected = useStore((s) => s.selected);
  const [bounds, setBounds] = useState<{ func: number; least: number; most: number }>();
  const bar = bounds?.func === func ? bounds : undefined;
  const raw = useStore((s) => s.raw);
  const histogram = useAnswer(`${trace}.${func}.${raw}`, (signal) => backend.histogram(func, raw, signal));
  const limits = bar ? { least: bar.least, most: bar.most } : {};
  const answer = useAnswer(`${trace}.${func}.${bar?.least}.${bar?.most}.${raw}`, (signal) =>
    backend.occurrences(
      { function: func, order: "duration", direction: "next", limit: LISTED, raw, ...limits },
      signal,
    ),
  );
  const calls = answer.value?.function === func ? answer.value.calls : [];
  const noted = info.valued.has(func) && calls.length > 0;
  const values = useAnswer(noted ? `${trace}.${calls.map(callKey).join()}` : null, (signal) =>
    askValues(backend, calls, signal),
  );
  const here =
    selected?.trace === trace
      ? calls.find((c) => c.thread === selected.thread && c.index === selected.index)
      : undefined;
  const longest = histogram.value?.max ?? calls[0]?.took ?? 0;
  return (
    <section class="by-duration" aria-label="Calls by duration">
      <header class="pane-head">
        <h3>
          <Whose trace={trace} /> <Swatch trace={trace} func={func} />{" "}
          <FullName text={readable(info.functions[func]?.name ?? "?")} />
        </h3>
        <button onClick={() => highlight(trace, func)} title="Highlight all its calls: the longer the stronger (h)">
          Highlight
        </button>
      </header>
      {histogram.value?.function === func && (
        <HistogramView
          histogram={histogram.value}
          marked={here?.took}
          open={false}
          chosen={bar}
          choose={(least, most) => setBounds(bar?.least === least ? undefined : { func, least, most })}
        />
      )}
      {answer.error && <Failed message={answer.error} again={answer.again} />}
      <div class="quiet" role="status" data-testid="by-duration-sum">
        {answer.value &&
          `${count(answer.value.count)} ${answer.value.count === 1 ? "call" : "calls"}` +
            (bar ? ` of ${duration(bar.least)} to ${duration(bar.most)}` : "") +
            (answer.value.count > calls.length ? `, the longest ${count(calls.length)} of them` : "")}
        {bar && (
          <button class="link" onClick={() => setBounds(undefined)}>
            All durations
          </button>
        )}
      </div>
      {calls.map((call) => {
        const on = here === call;
        const known = noted ? values.value?.get(callKey(call)) : undefined;
        const thread = threadName(info, call.thread);
        const words = known && valueWords(known);
        return (
          <button
            class={`call-line${on ? " on" : ""}`}
            aria-pressed={on}
            data-testid="by-duration"
            data-ns={call.took}
            onClick={() => {
              const at = { trace, thread: call.thread, index: call.index };
              select(at, call, { tab: "outliers" });
              const offset = offsetOf(trace);
              moveTo(fitThird(call.begin + offset, call.begin + call.duration + offset, store.total));
              scrollTrack(trace, call.thread);
            }}
          >
            <Bar share={longest > 0 ? call.took / longest : 0} />
            {words ? (
              <span class="name noted" title={`${words}\nin ${thread}`}>
                {words}
              </span>
            ) : (
              <span class="name">{thread}</span>
            )}
            <span class="quiet num">at {duration(call.begin)}</span>
            <span class="num" title={asRecorded(info, call.duration)}>
              {duration(call.took)}
            </span>
          </button>
        );
      })}
    </section>
  );
}

/** Slow calls of the chosen trace, or of both, and how many there are. */
function useSlow() {
  const { trace, label } = useScope();
  const both = useBoth();
  const now = scopeOf(store.state);
  const selected = useStore((s) => s.selected);
  const span = useStore((s) => s.selectedSpan);
  const scope =
    now.scope.index !== undefined && span
      ? { begin: span.begin, end: span.end, threads: [selected!.thread], raw: now.scope.raw ?? false }
      : now.scope;
  const answer = useAnswer(
    `${trace}:${both}:${JSON.stringify(scope)}`,
    async (signal) => {
      const { traces } = store.state;
      const asked = both ? traces.map((_, t) => t) : [trace];
      const answers = await Promise.all(
        asked.map((t) => traces[t]!.backend.outliers(scopeIn(scope, trace, t), signal)),
      );
      return {
        found: answers.reduce((sum, of) => sum + of.found, 0),
        slow: answers
          .flatMap((of, i) => of.slow.map((call) => ({ ...call, trace: asked[i]! })))
          .sort((a, b) => b.duration - b.usual - (a.duration - a.usual)),
        left: answers
          .flatMap((of, i) => of.left.map((call) => ({ ...call, trace: asked[i]! })))
          .sort((a, b) => b.most - b.usual - (a.most - a.usual)),
      };
    },
    store.state.scope === "view" ? 250 : 0,
  );
  return { ...answer, trace, label, both };
}

export function OutlierPanel() {
  const answer = useSlow();
  const { value, error, waiting, trace, label, both } = answer;
  const highlighted = useStore((s) => s.highlight);
  const span = useStore((s) => s.selectedSpan);
  const [func, setFunc] = useState<{ trace: number; function: number }>();
  const shows = (t: number) => both || t === trace;
  // The function that was chosen last, by whatever way.
  useEffect(() => {
    const { selected } = store.state;
    if (span && selected && shows(selected.trace)) setFunc({ trace: selected.trace, function: span.function });
  }, [span]);
  useEffect(() => {
    if (highlighted && shows(highlighted.trace)) setFunc(highlighted);
  }, [highlighted]);
  const chosen = func && shows(func.trace) ? func : value?.slow[0];
  const most = value?.slow[0] ? value.slow[0].duration - value.slow[0].usual : 0;
  return (
    <div class="outlier-panel">
      <div class="pane-tools">
        <ScopeChoice />
        <TraceChoice trace={trace} both={both} />
        <span class="grow" />
        <TimesChoice traces={[trace]} />
        <span class="quiet" role="status" data-testid="slow-sum">
          {value &&
            `${count(value.found)} ${value.found === 1 ? "call" : "calls"} took three times their function’s usual time or more`}
        </span>
        {waiting && value && <Waiting answer={answer} />}
      </div>
      {error ? (
        <Failed message={error} again={answer.again} />
      ) : !value ? (
        <Waiting answer={answer} />
      ) : (
        <div class="outlier-columns">
          <section class="slow" aria-label="Slow calls">
            {value.slow.map((call) => (
              <Slow key={`${call.trace}.${call.thread}.${call.index}`} {...{ call, trace: call.trace, most }} />
            ))}
            {value.left.map((call) => (
              <Left key={`left.${call.trace}.${call.thread}.${call.index}`} {...{ call, trace: call.trace }} />
            ))}
            {value.slow.length === 0 && value.left.length === 0 && (
              <Empty>
                {label === "everything" ? "No call" : `No call ${label}`} took three times as long as its function
                usually does. What is usual is known of functions with ten calls or more.
              </Empty>
            )}
          </section>
          {chosen && store.state.traces[chosen.trace]?.info.functions[chosen.function] && (
            <CallsByDuration trace={chosen.trace} func={chosen.function} />
          )}
        </div>
      )}
    </div>
  );
}
