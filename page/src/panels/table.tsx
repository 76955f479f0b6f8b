// SPDX-License-Identifier: MIT
// The table of functions. Rows beyond the screen are not in the page, so a hundred thousand functions
// scroll like a hundred.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FunctionRow } from "../backend/types/sums";
import { deselect, highlight, stepCall } from "../model/actions";
import { readable } from "../model/names";
import { matcher, sortRows } from "../model/rows";
import { store, useStore, type SortKey } from "../model/store";
import { count, duration, percent } from "../model/time";
import { Icon } from "./icon";
import { TimesChoice, Bar, Empty, Failed, FullName, Swatch, Waiting, Whose } from "./parts";
import { ScopeChoice, scopeIn, TraceChoice, useBoth, useScoped } from "./scope";

const ROW = 24;

const COLUMNS: readonly { key: SortKey; label: string; title: string }[] = [
  { key: "name", label: "Function", title: "Demangled name" },
  { key: "calls", label: "Calls", title: "All calls, open ones included" },
  { key: "total", label: "Total", title: "Time with the function on the stack; recursion counts once" },
  { key: "self", label: "Self", title: "Time not in traced functions that it called" },
  { key: "min", label: "Min", title: "Shortest complete call" },
  { key: "mean", label: "Mean", title: "Mean of the complete calls" },
  { key: "p50", label: "p50", title: "Half of the complete calls take no longer" },
  { key: "p99", label: "p99", title: "99% of the complete calls take no longer" },
  { key: "max", label: "Max", title: "Longest complete call" },
];

/** Where the trace has thread states. */
const STATE_COLUMNS = [
  { key: "cpu", label: "On CPU", title: "Part of the total time on a CPU" },
  { key: "runnable", label: "Runnable", title: "Part of the total time in which the thread could run, but had no CPU" },
  { key: "blocked", label: "Blocked", title: "Part of the total time in which the thread waited for something" },
  { key: "selfCpu", label: "Self on CPU", title: "Part of the self time on a CPU" },
  {
    key: "selfRunnable",
    label: "Self runnable",
    title: "Part of the self time in which the thread could run, but had no CPU",
  },
  {
    key: "selfBlocked",
    label: "Self blocked",
    title: "Part of the self time in which the thread waited for something",
  },
] as const;

const time = (ns: number | null) => (ns === null ? "–" : duration(ns));

type StateColumns = readonly (typeof STATE_COLUMNS)[number][];

function Head({ columns }: { columns: StateColumns }) {
  const sort = useStore((s) => s.sort);
  const ascending = useStore((s) => s.ascending);
  const sortBy = (key: SortKey) =>
    store.set(sort === key ? { ascending: !ascending } : { sort: key, ascending: key === "name" });
  return (
    <div class="grid-row grid-head" role="row" aria-rowindex={1}>
      {[...COLUMNS, ...columns].map(({ key, label, title }) => (
        <div
          role="columnheader"
          aria-sort={sort === key ? (ascending ? "ascending" : "descending") : "none"}
          class={`cell ${key}`}
        >
          <button title={title} onClick={() => sortBy(key)} class={sort === key ? "sorted" : ""}>
            {label}
            {sort === key && <Icon name={ascending ? "up" : "down"} />}
          </button>
        </div>
      ))}
    </div>
  );
}

/** The cells of one function. */
function Cells({
  row,
  several,
  busy,
  columns,
}: {
  row: TableRow;
  several: boolean;
  busy: number;
  columns: StateColumns;
}) {
  const { trace } = row;
  const f = store.state.traces[trace]?.info.functions[row.function];
  return (
    <>
      <div class="cell name" role="gridcell">
        {several && <Whose trace={trace} />}
        <Swatch trace={trace} func={row.function} />
        <FullName text={readable(f?.name ?? "?")} />
      </div>
      <div class="cell num" role="gridcell" data-column="calls">
        {count(row.calls)}
        {row.openCalls > 0 && (
          <span class="mark" title={`${row.openCalls} of them open`}>
            {" "}
            +{count(row.openCalls)} open
          </span>
        )}
      </div>
      <div class="cell num" role="gridcell" data-column="total" data-ns={row.total}>
        {duration(row.total)}
      </div>
      <div
        class="cell num barred"
        role="gridcell"
        data-column="self"
        data-ns={row.self}
        title={busy > 0 ? percent(row.self / busy) : ""}
      >
        <Bar share={busy > 0 ? row.self / busy : 0} />
        {duration(row.self)}
      </div>
      {(["min", "mean", "p50", "p99", "max", ...columns.map(({ key }) => key)] as const).map((key) => (
        <div class={`cell num ${key}`} role="gridcell" data-column={key} data-ns={row[key] ?? ""}>
          {time(row[key])}
        </div>
      ))}
    </>
  );
}

/** A row, and which trace it is of. */
interface TableRow extends FunctionRow {
  readonly trace: number;
}

function step(trace: number, row: FunctionRow): void {
  highlight(trace, row.function);
  deselect();
  void stepCall("next", "duration");
}

/** Where a key leads from a row: to one so many further on. */
const MOVES: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

/** The rows that are on screen, and some beside them. */
function Grid({ rows, several, busy }: { rows: readonly TableRow[]; several: boolean; busy: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  const marked = useStore((s) => s.highlight);
  const filter = useStore((s) => s.filter);
  useEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const isMarked = (row: TableRow) => marked?.function === row.function && marked.trace === row.trace;
  const choose = (row: TableRow) => highlight(row.trace, isMarked(row) ? null : row.function);
  const move = (i: number) => {
    const next = Math.min(rows.length - 1, Math.max(0, i));
    if (box.current) {
      const y = next * ROW;
      if (y < box.current.scrollTop) box.current.scrollTop = y;
      else if (y + ROW * 2 > box.current.scrollTop + box.current.clientHeight)
        box.current.scrollTop = y + ROW * 2 - box.current.clientHeight;
      setTop(box.current.scrollTop);
    }
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus());
  };
  const keys = (event: KeyboardEvent, i: number, row: TableRow) => {
    const go = MOVES[event.key];
    if (go !== undefined) move(i + go);
    else if (event.key === " ") choose(row);
    else if (event.key === "Enter") step(row.trace, row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const { traces } = store.state;
  const columns = rows.some((row) => traces[row.trace]?.info.states) ? STATE_COLUMNS : [];
  const first = Math.max(0, Math.floor(top / ROW) - 4);
  const shown = rows.slice(first, first + Math.ceil(height / ROW) + 9);
  return (
    <div
      class={`grid${columns.length > 0 ? " with-states" : ""}`}
      role="grid"
      aria-label="Functions"
      aria-rowcount={rows.length + 1}
      ref={box}
      onScroll={(e) => setTop(e.currentTarget.scrollTop)}
    >
      <Head columns={columns} />
      <div class="grid-body" style={{ height: `${rows.length * ROW}px` }}>
        {shown.map((row, k) => {
          const i = first + k;
          const f = traces[row.trace]?.info.functions[row.function];
          const on = isMarked(row);
          return (
            <div
              key={`${row.trace}.${row.function}`}
              class={`grid-row${on ? " on" : ""}`}
              role="row"
              aria-rowindex={i + 2}
              aria-selected={on}
              tabIndex={i === Math.ceil(top / ROW) || on ? 0 : -1}
              data-row={i}
              data-function={f?.name}
              style={{ top: `${i * ROW}px` }}
              title={
                f
                  ? `${f.name}\n${f.file ? `${f.file}:${f.line}\n` : ""}${f.module}\n` +
                    "Click: highlight. Double click or Enter: go to the longest call"
                  : ""
              }
              onClick={() => choose(row)}
              onDblClick={() => step(row.trace, row)}
              onKeyDown={(event) => keys(event, i, row)}
            >
              <Cells {...{ row, several, busy, columns }} />
            </div>
          );
        })}
      </div>
      {rows.length === 0 && <Empty>{filter ? "No function matches the filter." : "No call lies here."}</Empty>}
    </div>
  );
}

/** Rows of the trace that the scope is about; of both when that is chosen. */
function useRows() {
  const both = useBoth();
  const answer = useScoped(`table:${both}`, async (t, scope, signal) => {
    const { traces } = store.state;
    const ask = async (trace: number) => {
      const table = await traces[trace]!.backend.functions(scopeIn(scope, t, trace), signal);
      return { ...table, rows: table.rows.map((row): TableRow => ({ ...row, trace })) };
    };
    const tables = await Promise.all(both ? traces.map((_, trace) => ask(trace)) : [ask(t)]);
    return {
      busy: tables.reduce((sum, table) => sum + table.busy, 0),
      rows: tables.flatMap((table) => table.rows),
    };
  });
  return { ...answer, both };
}

export function TablePanel() {
  const answer = useRows();
  const { value, error, trace, waiting, both } = answer;
  const sort = useStore((s) => s.sort);
  const ascending = useStore((s) => s.ascending);
  const filter = useStore((s) => s.filter);
  const traces = useStore((s) => s.traces);
  const nameOf = (row: TableRow) => traces[row.trace]?.info.functions[row.function]?.name;
  const wanted = matcher(filter);
  const rows = useMemo(
    () =>
      sortRows(
        (value?.rows ?? []).filter((row) => wanted(nameOf(row) ?? "")),
        nameOf,
        sort,
        ascending,
      ),
    [value, filter, sort, ascending, traces],
  );
  return (
    <div class="table-panel">
      <div class="pane-tools">
        <ScopeChoice />
        <TraceChoice trace={trace} both={both} />
        <label class="filter">
          <Icon name="search" />
          <input
            type="search"
            placeholder="Filter by regular expression"
            aria-label="Filter functions by regular expression"
            value={filter}
            data-testid="function-filter"
            onInput={(event) => store.set({ filter: event.currentTarget.value })}
          />
        </label>
        <span class="grow" />
        <TimesChoice traces={[trace]} />
        <span class="quiet" role="status" data-testid="table-sum">
          {count(rows.length)} functions · {count(rows.reduce((n, row) => n + row.calls, 0))} calls ·{" "}
          {duration(rows.reduce((total, row) => total + row.self, 0))} self
        </span>
        {waiting && value && <Waiting answer={answer} />}
      </div>
      {error ? (
        <Failed message={error} again={answer.again} />
      ) : value === undefined ? (
        <Waiting answer={answer} />
      ) : (
        <Grid rows={rows} several={traces.length > 1} busy={value.busy} />
      )}
    </div>
  );
}
