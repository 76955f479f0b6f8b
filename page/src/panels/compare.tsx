// SPDX-License-Identifier: MIT
// Two traces, or two calls: their flows aligned (aligned.tsx), or merged by path. What is longer in B is red, what is
// shorter blue.
import { useMemo, useState } from "preact/hooks";
import type { Scope } from "../backend/types/backend";
import { highlight } from "../model/actions";
import { readable, threadName, visible } from "../model/names";
import { matcher } from "../model/rows";
import { store, useStore, type State } from "../model/store";
import { count, duration } from "../model/time";
import { Aligned, mainThreads, type AlignedSide } from "./aligned";
import { useAnswer } from "./answers";
import { Findings } from "./findings";
import { FlameGraph } from "./flame";
import { Empty, Failed, FullName, Swatch, TimesChoice, Waiting } from "./parts";

interface Side {
  trace: number;
  scope: Scope;
  label: string;
}

/** What is compared: two calls when one is kept, else the two traces. */
function sides(state: State): [Side, Side] | undefined {
  const { baseline, selected, selectedSpan, traces } = state;
  if (baseline && selected && selectedSpan) {
    const side = (at: typeof baseline): Side => ({
      trace: at.trace,
      scope: { thread: at.thread, index: at.index },
      label: `call ${at.index} of ${threadName(traces[at.trace]!.info, at.thread)}`,
    });
    return [side(baseline), side(selected)];
  }
  if (traces.length > 1)
    return [
      { trace: 0, scope: {}, label: traces[0]!.info.name },
      { trace: 1, scope: {}, label: traces[1]!.info.name },
    ];
  return undefined;
}

const MODES = [
  { mode: "order", label: "In order", title: "One above the other: the same calls in the same places" },
  { mode: "path", label: "By path", title: "Merged: calls with the same callers are one" },
] as const;

function alignedSides([a, b]: [Side, Side]): [AlignedSide, AlignedSide] {
  const side = ({ trace, scope }: Side): AlignedSide => ({ trace, thread: scope.thread!, index: scope.index! });
  return a.scope.index === undefined || b.scope.index === undefined ? mainThreads() : [side(a), side(b)];
}

function Tables({ a, b, id }: { a: Side; b: Side; id: string }) {
  return (
    <div class="compare-side">
      {a.trace !== b.trace && a.scope.index === undefined && <Findings />}
      <SelfTimes a={a} b={b} id={id} />
    </div>
  );
}

function SelfTimes({ a, b, id }: { a: Side; b: Side; id: string }) {
  const [filter, setFilter] = useState("");
  const raw = useStore((s) => s.raw);
  const answer = useAnswer(`${id}|${raw}`, (signal) =>
    Promise.all(
      [a, b].map(({ trace, scope }, side) =>
        store.state.traces[trace]!.backend.functions({ ...scope, raw, beside: [b, a][side]!.trace }, signal),
      ),
    ),
  );
  const rows = useMemo(() => {
    if (!answer.value) return [];
    const byName = new Map<
      string,
      { name: string; func: number; trace: number; self: [number, number]; calls: [number, number] }
    >();
    answer.value.forEach((table, side) => {
      const { trace } = side === 0 ? a : b;
      for (const row of table.rows) {
        const name = store.state.traces[trace]!.info.functions[row.function]?.name ?? "?";
        let sum = byName.get(name);
        if (!sum) byName.set(name, (sum = { name, func: row.function, trace, self: [0, 0], calls: [0, 0] }));
        sum.self[side]! += row.self;
        sum.calls[side]! += row.calls;
      }
    });
    return [...byName.values()].sort((x, y) => Math.abs(y.self[1] - y.self[0]) - Math.abs(x.self[1] - x.self[0]));
  }, [answer.value]);
  if (answer.error) return <Failed message={answer.error} again={answer.again} />;
  if (!answer.value) return <Waiting answer={answer} />;
  const wanted = matcher(filter);
  const shown = rows.filter((row) => wanted(row.name)).slice(0, 200);
  const most = Math.max(1, ...rows.map((row) => Math.abs(row.self[1] - row.self[0])));
  return (
    <section class="compare-table" aria-label="Difference by function">
      <header class="pane-head">
        <h3>Self time: B − A</h3>
        <input
          type="search"
          placeholder="Filter"
          aria-label="Filter functions"
          value={filter}
          onInput={(e) => setFilter(e.currentTarget.value)}
        />
      </header>
      <div class="compare-rows">
        {shown.map((row) => {
          const delta = row.self[1] - row.self[0];
          return (
            <button
              class="call-line"
              onClick={() => highlight(row.trace, row.func)}
              title={
                `${row.name}\nA ${duration(row.self[0])} in ${count(row.calls[0])} calls\n` +
                `B ${duration(row.self[1])} in ${count(row.calls[1])} calls`
              }
            >
              <span
                class={`bar ${delta > 0 ? "longer" : "shorter"}`}
                style={{ width: `${(Math.abs(delta) / most) * 100}%` }}
              />
              <Swatch trace={row.trace} func={row.func} />
              <FullName text={readable(row.name)} />
              <span class="quiet num">
                {row.calls[1] === row.calls[0]
                  ? `${count(row.calls[0])}×`
                  : `${count(row.calls[0])} → ${count(row.calls[1])}×`}
              </span>
              <span class={`num ${delta > 0 ? "longer" : delta < 0 ? "shorter" : ""}`}>
                {delta === 0 ? "±0" : `${delta > 0 ? "+" : "−"}${duration(Math.abs(delta))}`}
              </span>
            </button>
          );
        })}
      </div>
    </section>
  );
}

export function ComparePanel() {
  useStore((s) => s.baseline);
  useStore((s) => s.selected);
  useStore((s) => s.selectedSpan);
  const offset = useStore((s) => s.offset);
  const traces = useStore((s) => s.traces);
  const [zoom, setZoom] = useState<{ id: string; path: number[] }>({ id: "", path: [] });
  const pair = sides(store.state);
  const id = pair ? JSON.stringify(pair) : "";
  const path = zoom.id === id ? zoom.path : [];
  const mode = useStore((s) => s.comparing);
  const raw = useStore((s) => s.raw);
  const answer = useAnswer(pair && mode === "path" ? `${id}|${path.join()}|${raw}` : null, (signal) => {
    const [a, b] = pair!;
    const query = { path, b: { ...b.scope, trace: b.trace } };
    return store.state.traces[a.trace]!.backend.flame({ ...a.scope, raw }, query, signal);
  });
  if (!pair)
    return (
      <Empty>
        Select a call and press <kbd>c</kbd> to keep it; then select another one to see both side by side. Or open two
        traces: <code>karst view A.karst B.karst</code>.
      </Empty>
    );
  const [a, b] = pair;
  const same = a.trace === b.trace && a.scope.thread === b.scope.thread && a.scope.index === b.scope.index;
  return (
    <div class="compare-panel">
      <div class="pane-tools">
        <span class="side">
          <b>A</b> {visible(a.label)}
        </span>
        <span class="side">
          <b>B</b> {visible(b.label)}
        </span>
        <div class="segments" role="radiogroup" aria-label="Way of comparing">
          {MODES.map(({ mode: way, label, title }) => (
            <button
              role="radio"
              aria-checked={mode === way}
              title={title}
              onClick={() => store.set({ comparing: way })}
            >
              {label}
            </button>
          ))}
        </div>
        {mode === "path" && answer.value?.b && (
          <span class="quiet" data-testid="compare-sum">
            A {duration(answer.value.total)} · B {duration(answer.value.b.total)}
          </span>
        )}
        <span class="legend">
          <span class="key shorter" /> shorter in B <span class="key longer" /> longer in B
        </span>
        <TimesChoice traces={[a.trace, b.trace]} />
        <span class="grow" />
        {traces.length > 1 && (
          <label>
            Move B by
            <input
              class="time"
              aria-label="Move trace B by, in ms"
              type="number"
              step="any"
              value={offset / 1e6}
              onChange={(event) => store.set({ offset: Number(event.currentTarget.value) * 1e6 || 0 })}
            />
            ms
          </label>
        )}
        {traces.length > 1 && (
          <button
            title="Moves trace B so that the kept call and the selected one begin at the same time"
            disabled={!store.state.baseline || store.state.baseline.trace === store.state.selected?.trace}
            onClick={() => void align()}
          >
            Align calls
          </button>
        )}
        {path.length > 0 && <button onClick={() => setZoom({ id, path: [] })}>Whole</button>}
        {store.state.baseline && (
          <button onClick={() => store.set({ baseline: null })}>Forget {shortBaseline()}</button>
        )}
      </div>
      {same ? (
        <Empty>This is the call that was kept. Select another one to compare it with.</Empty>
      ) : mode === "order" ? (
        <div class="compare-panes">
          <Aligned sides={alignedSides(pair)} />
          <Tables a={a} b={b} id={id} />
        </div>
      ) : answer.error ? (
        <Failed message={answer.error} again={answer.again} />
      ) : !answer.value ? (
        <Waiting answer={answer} />
      ) : (
        <div class="compare-panes">
          <FlameGraph
            flame={answer.value}
            trace={a.trace}
            rootLabel="both"
            onZoom={(more) => setZoom({ id, path: [...path, ...more].filter((f) => f >= 0) })}
          />
          <Tables a={a} b={b} id={id} />
        </div>
      )}
    </div>
  );
}

function shortBaseline(): string {
  const { baseline } = store.state;
  return baseline ? `call ${baseline.index}` : "";
}

async function align(): Promise<void> {
  const { baseline, selected, traces } = store.state;
  if (!baseline || !selected || baseline.trace === selected.trace) return;
  const [a, b] = baseline.trace === 0 ? [baseline, selected] : [selected, baseline];
  const of = (at: typeof a) => traces[at.trace]!.backend.call({ thread: at.thread, index: at.index }, true);
  try {
    const [callA, callB] = await Promise.all([of(a), of(b)]);
    store.set({ offset: callA.begin - callB.begin });
  } catch (error) {
    store.set({ notice: (error as Error).message });
  }
}
