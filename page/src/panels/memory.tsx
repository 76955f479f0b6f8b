// SPDX-License-Identifier: MIT
// What the selected call and all that it called took of memory, and what was not freed by its end.
import type { CallMemory, Taker } from "../backend/types/memory";
import type { Selected } from "../model/store";
import { store } from "../model/store";
import { size } from "../model/sizes";
import { count } from "../model/time";
import { useAnswer } from "./answers";
import { Bar, FullName, formFor, functionName, Swatch, Waiting } from "./parts";

const times = (n: number) => (n === 1 ? "1 allocation" : `${count(n)} allocations`);

function words(of: CallMemory): string {
  const about = of.sampled > 0 ? "about " : "";
  if (of.allocations === 0) {
    if (!of.whole) return "None in what this trace has of the call.";
    return of.sampled > 0 ? "None of its allocations was sampled." : "It took none.";
  }
  const margin = (bytes: number) => (of.sampled > 0 ? ` ± ${size(bytes)}` : "");
  const taken = `${about}${size(of.bytes)}${margin(of.bytesMargin)} in ${times(of.allocations)}`;
  const left =
    of.left > 0
      ? `${about}${size(of.leftBytes)}${margin(of.leftMargin)} in ${count(of.left)} not freed by its end`
      : of.unknown > 0
        ? ""
        : "all freed by its end";
  const unknown = of.unknown > 0 ? `whether ${count(of.unknown)} were freed is not known` : "";
  const part = of.whole ? "" : "only what this trace has of the call is counted";
  return `${[taken, left, unknown, part].filter((text) => text !== "").join("; ")}.`;
}

const title = (of: Omit<Taker, "function">) =>
  `${times(of.allocations)}, ${size(of.bytes)}; ${size(of.leftBytes)} in ${count(of.left)} not freed by the call’s end`;

export function MemoryView({ at }: { at: Selected }) {
  const { backend, info } = store.state.traces[at.trace]!;
  const key = info.hasMemory && !info.aggregated ? `${at.trace}.${at.thread}.${at.index}` : null;
  const answer = useAnswer(key, async (signal) => ({
    of: key,
    memory: await backend.memory({ thread: at.thread, index: at.index }, signal),
  }));
  if (key === null) return null;
  // The last call's stays while the next one's is on its way.
  const value = answer.value?.of === key ? answer.value.memory : undefined;
  return (
    <div class="waits" data-testid="memory">
      <h3>Memory taken within it</h3>
      {answer.error && <div class="quiet">{answer.error}</div>}
      {!value && answer.waiting && <Waiting answer={answer} />}
      {value && (
        <>
          <p class="memory-sum" data-testid="memory-sum">
            {words(value)}
          </p>
          {value.functions.map((of) => (
            <div class="call-line" title={`${functionName(at.trace, of.function)}\n${title(of)}`} data-testid="taker">
              <Bar share={value.bytes > 0 ? of.bytes / value.bytes : 0} />
              <Swatch trace={at.trace} func={of.function} />
              <FullName text={formFor(at.trace, of.function, 40)} />
              <span class="quiet num">{count(of.allocations)}×</span>
              <span class="num">{size(of.bytes)}</span>
            </div>
          ))}
          {value.moreFunctions > 0 && <div class="quiet">and {count(value.moreFunctions)} functions more</div>}
          {value.sampled > 0 && (
            <div class="quiet">Estimates: one allocation in {size(value.sampled)} was recorded.</div>
          )}
        </>
      )}
    </div>
  );
}
