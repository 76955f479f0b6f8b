// SPDX-License-Identifier: MIT
// The measured range: its length, what ran in it, and what can be made of it.
import { fitSelection, highlight } from "../model/actions";
import { readable } from "../model/names";
import { store, useStore } from "../model/store";
import { count, duration, exact, parseTime, percent } from "../model/time";
import { useAnswer } from "./answers";
import { Icon } from "./icon";
import { TimesChoice, Bar, Empty, Failed, FullName, States, Swatch, Waiting } from "./parts";
import { TraceChoice } from "./scope";

export function RangePanel() {
  const range = useStore((s) => s.range);
  const traces = useStore((s) => s.traces);
  const trace = useStore((s) => Math.max(0, Math.min(s.tableTrace, s.traces.length - 1)));
  const moved = useStore((s) => (trace === 1 ? s.offset : 0));
  const { backend, info } = traces[trace] ?? {};
  const begin = Math.max(0, range?.begin ?? 0);
  const end = Math.max(begin, range?.end ?? 0);
  // In the trace's own time.
  const own = { begin: Math.max(0, begin - moved), end: Math.max(0, end - moved) };
  const answer = useAnswer(
    range ? `${trace}:${own.begin}-${own.end}` : null,
    (signal) => backend!.functions(own, signal),
    120,
  );
  if (!range)
    return (
      <Empty>
        Drag on the ruler, or press <kbd>m</kbd> and drag anywhere, to measure a range. Edges snap to the ends of calls.{" "}
        <kbd>r</kbd> measures the selected call, else what is in view.
      </Empty>
    );
  const cut = backend?.cutAddress(own.begin, own.end);
  const edge = (which: "begin" | "end") => (
    <label>
      {which === "begin" ? "From" : "To"}
      <input
        class="time"
        aria-label={`${which === "begin" ? "Begin" : "End"} of the range, in ns or with a unit`}
        value={`${count(which === "begin" ? begin : end)} ns`}
        onChange={(event) => {
          const ns = parseTime(event.currentTarget.value);
          if (ns === undefined)
            store.set({ notice: `“${event.currentTarget.value}” is no time. Write 1200, 1.2us, 3ms or 2s.` });
          else if (which === "begin") store.set({ range: { begin: Math.min(ns, end), end } });
          else store.set({ range: { begin, end: Math.max(ns, begin) } });
        }}
      />
    </label>
  );
  const top = [...(answer.value?.rows ?? [])].sort((a, b) => b.self - a.self).slice(0, 60);
  const busy = answer.value?.busy ?? 0;
  const functions = info?.functions ?? [];
  return (
    <div class="range-panel">
      <section class="range-main" aria-label="Range">
        <div class="range-length" title={exact(end - begin)} data-testid="range-length" data-ns={end - begin}>
          {duration(end - begin)}
        </div>
        <div class="edges">
          {edge("begin")}
          {edge("end")}
        </div>
        {answer.value && (
          <dl class="facts">
            <div>
              <dt>Calls</dt>
              <dd data-testid="range-calls">{count(answer.value.calls)} overlap it</dd>
            </div>
            <div>
              <dt>Traced time</dt>
              <dd title="Self time of all functions, on all threads">
                {duration(busy)} on all threads{end > begin && `, ${(busy / (end - begin)).toFixed(2)} at once`}
              </dd>
            </div>
          </dl>
        )}
        <TimesChoice traces={[trace]} />
        {answer.value?.states && <States times={answer.value.states} label="range" />}
        <div class="actions">
          <button onClick={() => (store.set({ tab: "range" }), fitSelection())}>
            <Icon name="fit" /> Fit
          </button>
          <button onClick={() => store.set({ tab: "functions", scope: "range" })}>Table</button>
          <button onClick={() => store.set({ tab: "flame", scope: "range" })}>Flame graph</button>
          {cut ? (
            <a
              class="button"
              href={cut}
              download={`${info?.name.replace(/\.karst$/, "")}-range.karst`}
              data-testid="save-range"
            >
              <Icon name="save" /> Save as .karst
            </a>
          ) : null}
          <button onClick={() => store.set({ range: null })}>
            <Icon name="close" /> Clear
          </button>
        </div>
      </section>
      <section class="range-top" aria-label="Self time in the range">
        <header class="pane-head">
          <h3>Self time in the range</h3>
          <TraceChoice trace={trace} fixed={false} />
        </header>
        {answer.waiting && <Waiting answer={answer} />}
        {answer.error && <Failed message={answer.error} again={answer.again} />}
        {top.map((row) => (
          <button
            class="call-line"
            onClick={() => highlight(trace, row.function)}
            title={`${functions[row.function]?.name}\nClick: highlight all its calls`}
          >
            <Bar share={busy > 0 ? row.self / busy : 0} />
            <Swatch trace={trace} func={row.function} />
            <FullName text={readable(functions[row.function]?.name ?? "?")} />
            <span class="quiet num">{count(row.calls)}×</span>
            <span class="quiet num share">{percent(busy > 0 ? row.self / busy : 0)}</span>
            <span class="num">{duration(row.self)}</span>
          </button>
        ))}
      </section>
    </div>
  );
}
