// SPDX-License-Identifier: MIT
// Why a call took longer than its siblings: what `karst explain` says of it, drawn. A cause that the pointer or the focus
// is on is framed in the timeline; a click goes to the call that it is about.
import type { Cause, Explanation } from "../backend/answers";
import { goTo, moveTo, offsetOf, select } from "../model/actions";
import { readable, visible } from "../model/names";
import { store, useStore, type Selected } from "../model/store";
import { count, duration, exact, percent } from "../model/time";
import { fitThird } from "../model/view";
import { useAnswer } from "./answers";
import { Icon } from "./icon";
import { Bar, Failed, functionName, Swatch, Waiting } from "./parts";

/** A cause's call; undefined: the explained call has none. */
function callOf(of: Selected, cause: Cause) {
  const { at, atFunction, atBegin, atDuration, atDepth } = cause;
  if (at === null || atFunction === null || atBegin === null || atDuration === null || atDepth === null) return;
  return {
    at: { trace: of.trace, thread: of.thread, index: at },
    times: { function: atFunction, begin: atBegin, duration: atDuration, depth: atDepth },
  };
}

/** Frames a cause's call in the timeline, or what it waited. */
function point(of: Selected, cause?: Cause): void {
  const call = cause && callOf(of, cause);
  if (!call) return store.set({ pointed: null });
  const begin = cause.waitBegin ?? call.times.begin;
  const end = begin + (cause.wait ?? call.times.duration);
  store.set({ pointed: { trace: of.trace, thread: of.thread, depth: call.times.depth, begin, end } });
}

function show(of: Selected, cause: Cause): void {
  const call = callOf(of, cause);
  if (!call)
    return store.set({ notice: "Typical calls make this call; the explained one did not, so there is none to show." });
  select(call.at, call.times, { reveal: true });
  if (cause.waitBegin === null || cause.wait === null) return;
  const begin = cause.waitBegin + offsetOf(of.trace);
  moveTo(fitThird(begin, begin + cause.wait, store.total));
}

function CauseLine({ of, cause, greatest }: { of: Selected; cause: Cause; greatest: number }) {
  const on = useStore((s) => s.selected?.index === cause.at && s.selected?.thread === of.thread);
  const func = cause.path.at(-1)?.function;
  const { waker, wakerCall } = cause;
  const names = cause.path.map((call) => readable(functionName(of.trace, call.function)));
  return (
    <li>
      <button
        class={`cause${on && cause.path.length > 0 ? " on" : ""}`}
        data-testid="cause"
        data-kind={cause.kind}
        data-ns={cause.excess}
        title={`${names.join(" > ") || "In the call's own code"}\n${
          cause.at !== null ? "Click: show it" : "The explained call does not have it"
        }`}
        onClick={() => show(of, cause)}
        onPointerEnter={() => point(of, cause)}
        onPointerLeave={() => point(of, undefined)}
        onFocus={() => point(of, cause)}
        onBlur={() => point(of, undefined)}
      >
        <span class="cause-share">
          <Bar share={greatest > 0 ? cause.excess / greatest : 0} />
          <span class="num">{percent(cause.share)}</span>
        </span>
        <span class="num cause-time" title={exact(cause.excess)}>
          {duration(cause.excess)}
        </span>
        <span class="cause-words">
          {func !== undefined && func >= 0 && <Swatch trace={of.trace} func={func} />}
          <b>{visible(cause.place)}</b>: {visible(cause.what)}
        </span>
      </button>
      {cause.chain.map(({ words }) =>
        waker !== null && wakerCall !== null ? (
          <button
            class="cause-chain link"
            title="Go to the call that ended the wait"
            onClick={() => void goTo({ trace: of.trace, thread: waker, index: wakerCall })}
          >
            {visible(words)}
          </button>
        ) : (
          <div class="cause-chain quiet">{visible(words)}</div>
        ),
      )}
      {cause.values.map(({ words }) => (
        <div class="cause-chain" data-testid="cause-value">
          {visible(words)}
        </div>
      ))}
    </li>
  );
}

function Answer({ of, value }: { of: Selected; value: Explanation }) {
  const greatest = Math.max(0, ...value.causes.map((cause) => cause.excess));
  const facts: [string, string][] = [
    ["Took", duration(value.duration)],
    ["Usual", `${duration(value.usual)}, the median of ${count(value.siblings)} other calls`],
    ["Excess", `${duration(value.excess)}, against ${count(value.typical)} typical calls`],
  ];
  return (
    <>
      <p class="sentence" data-testid="headline">
        {visible(value.headline)}
      </p>
      {value.values.map(({ words }) => (
        <p data-testid="explained-value">{visible(words)}</p>
      ))}
      {value.siblings > 0 && (
        <dl class="facts">
          {facts.map(([name, text]) => (
            <div>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      )}
      {value.siblings > 0 && value.siblings < 10 && <p class="quiet">These are few to tell what is usual.</p>}
      {value.first && value.siblings > 0 && <p class="quiet">It is the first call of its function.</p>}
      {value.causes.length > 0 && (
        <ol class="causes" aria-label="Causes, by their share of the excess">
          {value.causes.map((cause) => (
            <CauseLine {...{ of, cause, greatest }} />
          ))}
          <li class="cause quiet">
            <span class="cause-share">
              <span class="num">{percent(value.restShare)}</span>
            </span>
            <span class="num cause-time">{duration(value.rest)}</span>
            <span class="cause-words">the rest</span>
          </li>
        </ol>
      )}
      {value.callCost > 0 && (
        <p class="quiet" data-testid="explained-cost">
          These times are without tracing’s own {duration(value.callCost)} a call, an estimate
          {value.callCostOffBy > 0 && ` that may be off by ${duration(value.callCostOffBy)}`}; the timeline’s are as
          recorded.
        </p>
      )}
    </>
  );
}

/** Of the call that was asked about, whichever is selected now. */
export function ExplanationView({ of }: { of: Selected }) {
  const loaded = store.state.traces[of.trace]!;
  const here = useStore(
    (s) => s.selected?.trace === of.trace && s.selected.index === of.index && s.selected.thread === of.thread,
  );
  const key = `${of.trace}.${of.thread}.${of.index}`;
  const answer = useAnswer(key, (signal) => loaded.backend.explain({ thread: of.thread, index: of.index }, signal));
  const value = answer.value?.thread === of.thread && answer.value.index === of.index ? answer.value : undefined;
  return (
    <section class="why" aria-label="Why it took so long" data-explained={key}>
      <header class="pane-head">
        <h3>Why it took so long</h3>
        <span class="grow" />
        {!here && <button onClick={() => void goTo(of)}>To the call</button>}
        <button
          class="icon"
          aria-label="Close the explanation"
          title="Close (e)"
          onClick={() => store.set({ explained: null, pointed: null })}
        >
          <Icon name="close" />
        </button>
      </header>
      {answer.error ? (
        <Failed message={answer.error} again={answer.again} />
      ) : value ? (
        <Answer of={of} value={value} />
      ) : (
        <Waiting answer={answer} />
      )}
    </section>
  );
}
