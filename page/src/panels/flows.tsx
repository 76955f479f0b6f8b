// SPDX-License-Identifier: MIT
// Flows that the selected call is a step of: what led to it, and what it led to; of a coroutine, how long it was
// suspended. Each of these calls is one click away.
import type { CallFlow, StepBeside } from "../backend/answers";
import { goTo } from "../model/actions";
import { visible } from "../model/names";
import { store, useStore, type Selected } from "../model/store";
import { count, duration, exact } from "../model/time";
import { FullName, formFor, functionName, Swatch } from "./parts";

function Step({ trace, of, words, label }: { trace: number; of: StepBeside; words: string; label: string }) {
  const thread = store.state.traces[trace]?.info.threads[of.thread];
  const who = thread ? visible(`${thread.name || "thread"} ${thread.tid}`) : "";
  const { index } = of;
  const gap = (
    <span class="num" title={exact(of.gap)}>
      {words} {duration(of.gap)}
    </span>
  );
  if (index === null)
    return (
      <div class="call-line">
        <span class="name quiet">{label} in no traced call</span>
        <span class="quiet num">{who}</span>
        {gap}
      </div>
    );
  return (
    <button
      class="call-line"
      data-testid={`flow-${label}`}
      title={`Go to the step ${label}, ${functionName(trace, of.function)}, in ${who}`}
      onClick={() => void goTo({ trace, thread: of.thread, index })}
    >
      <Swatch trace={trace} func={of.function} />
      <FullName text={formFor(trace, of.function, 40)} />
      <span class="quiet num">{who}</span>
      {gap}
    </button>
  );
}

function Flow({ trace, of }: { trace: number; of: CallFlow }) {
  const last = of.step === of.steps ? (of.ended ? ", the last one" : ", the last one in this trace") : "";
  const [before] = of.before;
  const [after] = of.after;
  const what = of.coroutine ? "resumption" : "step";
  return (
    <>
      <h3 data-testid="flow">
        {visible(of.name)}: {what} {count(of.step)} of {count(of.steps)}
        {last}
      </h3>
      {before && (
        <Step trace={trace} of={before} label="before" words={of.coroutine ? "was suspended for" : "came after"} />
      )}
      {after && (
        <Step trace={trace} of={after} label="after" words={of.coroutine ? "suspended for" : "goes on after"} />
      )}
    </>
  );
}

export function FlowsView({ at }: { at: Selected }) {
  const flows = useStore((s) => s.flows);
  if (flows?.at.trace !== at.trace || flows.at.thread !== at.thread || flows.at.index !== at.index) return null;
  const more = flows.flows.count - flows.flows.flows.length;
  return (
    <div class="waits" data-testid="flows">
      {flows.flows.flows.map((flow) => (
        <Flow trace={at.trace} of={flow} />
      ))}
      {more > 0 && <div class="quiet">and {count(more)} steps more; `karst flows` lists all</div>}
    </div>
  );
}
