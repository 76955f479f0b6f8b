// SPDX-License-Identifier: MIT
// What changed between two traces, in karst diff's words: its first line is the first row here.
import { highlight } from "../model/actions";
import { visible } from "../model/names";
import { MOST_CALLS } from "../model/opening";
import { store, useStore } from "../model/store";
import { useAnswer } from "./answers";
import { Failed, Waiting } from "./parts";

/** Highlights a function by its name, in B where that has it. */
function mark(name: string): void {
  for (const trace of [1, 0]) {
    const func = Object.entries(store.state.traces[trace]!.info.functions).find(([, f]) => f?.name === name)?.[0];
    if (func !== undefined) return highlight(trace, Number(func));
  }
}

export function Findings() {
  const traces = useStore((s) => s.traces);
  const raw = useStore((s) => s.raw);
  const names = traces.map(({ info }) => info.name).join(" ");
  const calls = traces.reduce((sum, { info }) => sum + info.calls, 0);
  const few = calls <= MOST_CALLS;
  const answer = useAnswer(few ? `${names}|${calls}|${raw}` : null, (signal) =>
    traces[0]!.backend.findings(1, raw, signal),
  );
  const { value, error } = answer;
  if (!few) return <p class="quiet">What changed in so many calls says: karst diff {visible(names)}</p>;
  if (error) return <Failed message={error} again={answer.again} />;
  if (!value) return <Waiting answer={answer} />;
  return (
    <section class="findings" aria-label="What changed">
      <h3>What changed: {value.all}</h3>
      {value.findings.map(({ words, function: name, more, certain }) => (
        <button
          class={certain ? "" : "quiet"}
          data-testid="finding"
          title="Highlight the function’s calls"
          onClick={() => mark(name)}
        >
          <i class={`key ${more > 0 ? "longer" : "shorter"}`} /> {visible(words)}
        </button>
      ))}
      {value.findings.length === 0 && <p class="quiet">Nothing that is worth a line.</p>}
      {value.leftOut > 0 && <p class="quiet">{value.leftOut} lesser ones: karst diff --all</p>}
    </section>
  );
}
