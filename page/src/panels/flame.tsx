// SPDX-License-Identifier: MIT
// Flame graphs: calls merged by path, exact. Also draws the comparison of two sets of calls.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Flame } from "../backend/types/sums";
import { changeSet, highlight } from "../model/actions";
import { change, matched, pathTo, placeFlame, without, type Cell as FlameCell } from "../model/flame";
import { forms, visible } from "../model/names";
import { matcher } from "../model/rows";
import { store, useStore } from "../model/store";
import { count, duration, percent } from "../model/time";
import { currentScene } from "../timeline/steps";
import { Icon } from "./icon";
import { TimesChoice, Empty, Failed, Waiting } from "./parts";
import { ScopeChoice, TraceChoice, useScoped } from "./scope";

const ROW = 20;

export function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}

/** Red for longer, blue for shorter: told apart in all common kinds of colour blindness; the sign is in words too. */
export function changeColour(by: number): string {
  const strength = Math.sqrt(Math.min(1, Math.abs(by))) * 70;
  return by > 0
    ? `color-mix(in oklab, var(--longer) ${strength}%, var(--same))`
    : `color-mix(in oklab, var(--shorter) ${strength}%, var(--same))`;
}

interface Shown {
  flame: Flame;
  trace: number;
  rootLabel: string;
  onZoom: (path: number[]) => void;
  /** Leaves a function out; where nothing can be left out there is no such thing. */
  onHide?: (func: number) => void;
  /** What is searched for: other cells are dimmed. */
  sought?: ((func: number) => boolean) | undefined;
}

/** From a cell to the one above, below or beside it. */
function walk(event: KeyboardEvent, flame: Flame, cells: readonly FlameCell[]): void {
  const element = event.target as HTMLElement;
  const cell = cells.find(({ node }) => String(node) === element.dataset.node);
  if (!cell || !event.key.startsWith("Arrow")) return;
  const steps: Record<string, () => FlameCell | undefined> = {
    ArrowUp: () => cells.find((c) => c.node === flame.parent[cell.node]),
    ArrowDown: () => cells.find((c) => flame.parent[c.node] === cell.node),
    ArrowRight: () => cells.find((c) => c.depth === cell.depth && c.x > cell.x),
    ArrowLeft: () => [...cells].reverse().find((c) => c.depth === cell.depth && c.x < cell.x),
  };
  const to = steps[event.key]?.();
  event.preventDefault();
  event.stopPropagation();
  if (to) element.parentElement?.querySelector<HTMLElement>(`[data-node="${to.node}"]`)?.focus();
}

/** A node's times; of two sets of calls, how they differ. `time`: the shortest way to say it. */
function nodeWords(flame: Flame, node: number): { facts: string; time: string } {
  const total = flame.totals[node]!;
  const calls = count(flame.counts[node]!);
  if (!flame.b) {
    const self = duration(flame.selfs[node]!);
    return {
      facts: `${duration(total)} (${percent(total / flame.total)}), self ${self}, ${calls} calls`,
      time: `${duration(total)} (${percent(total / flame.total)})`,
    };
  }
  const totalB = flame.b.totals[node]!;
  const delta = totalB - total;
  const differs = delta === 0 ? "the same" : `${duration(Math.abs(delta))} ${delta > 0 ? "longer" : "shorter"}`;
  return {
    facts: `A ${duration(total)} in ${calls} calls, B ${duration(totalB)} in ${count(flame.b.counts[node]!)}: ${differs}`,
    time: `${delta > 0 ? "+" : delta < 0 ? "−" : "±"}${duration(Math.abs(delta))}`,
  };
}

/** `on`: its function is highlighted. */
function Cell(props: Shown & { cell: FlameCell; width: number; on: boolean }) {
  const { flame, trace, rootLabel, onZoom, onHide, sought, cell, width, on } = props;
  const { node, depth } = cell;
  const func = flame.func[node]!;
  const functions = store.state.traces[trace]?.info.functions ?? [];
  const name = functions[func]?.name ?? flame.extraFunctions[func - functions.length] ?? "?";
  const wide = cell.width * width;
  const all = func >= 0 ? forms(name) : [];
  const fits = (wide > 190 ? wide - 110 : wide - 10) / 6.2;
  const label =
    func === -1
      ? rootLabel
      : func === -2
        ? `${count(flame.merged[node]!)} others`
        : visible(all.find((form) => form.length <= fits) ?? all[all.length - 1]!);
  const { facts, time } = nodeWords(flame, node);
  const colour = func >= 0 ? currentScene()?.looks(trace)?.css[func] : undefined;
  return (
    <button
      class={`flame-cell${on ? " on" : ""}${sought && !(func >= 0 && sought(func)) ? " dim" : ""}`}
      role="treeitem"
      aria-level={depth + 1}
      aria-label={flame.b ? `${label} ${time}: ${facts}` : `${label}: ${facts}`}
      tabIndex={depth === 0 ? 0 : -1}
      data-node={node}
      data-function={func >= 0 ? name : ""}
      data-self={flame.selfs[node]}
      title={
        `${func >= 0 ? visible(name) : label}\n${facts}\n` +
        "Click: only this. Ctrl and click: highlight in the timeline" +
        (onHide ? ". Shift and click, or Delete: hide the function" : "")
      }
      style={{
        left: `${cell.x * width}px`,
        top: `${depth * ROW}px`,
        width: `${Math.max(1, wide - 1)}px`,
        background: flame.b ? changeColour(change(flame, node)) : (colour ?? "var(--raised)"),
      }}
      onClick={(event) => {
        if (func >= 0 && event.shiftKey && onHide) onHide(func);
        else if (func >= 0 && (event.ctrlKey || event.metaKey)) highlight(trace, func);
        else if (func !== -2) onZoom(pathTo(flame, node));
      }}
    >
      {wide > 28 && (
        <>
          <span class="flame-name">{label}</span>
          {wide > 190 && <span class="flame-time"> {time}</span>}
        </>
      )}
    </button>
  );
}

export function FlameGraph(props: Shown) {
  const { flame, trace } = props;
  const { ref, width } = useWidth();
  const marked = useStore((s) => s.highlight);
  const cells = useMemo(() => placeFlame(flame, 1.2 / Math.max(width, 100)), [flame, width]);
  const depth = cells.reduce((most, cell) => Math.max(most, cell.depth), 0);
  return (
    <div class="flame-scroll">
      <div
        class="flame"
        ref={ref}
        role="tree"
        aria-label="Flame graph"
        style={{ height: `${(depth + 1) * ROW}px` }}
        onKeyDown={(event) => {
          const node = Number((event.target as HTMLElement).dataset.node);
          const func = flame.func[node] ?? -1;
          if (event.key === "Delete" && func >= 0) props.onHide?.(func);
          else walk(event, flame, cells);
        }}
      >
        {cells.map((cell) => (
          <Cell
            key={cell.node}
            {...props}
            {...{ cell, width, on: marked?.trace === trace && marked.function === flame.func[cell.node] }}
          />
        ))}
      </div>
    </div>
  );
}

const TIMES = [
  { id: "wall", label: "Wall", title: "All time that calls took" },
  { id: "cpu", label: "CPU", title: "Time on a CPU" },
  { id: "runnable", label: "Runnable", title: "Time in which the thread could run, but had no CPU" },
  { id: "blocked", label: "Blocked", title: "Time in which the thread waited for something" },
] as const;

export function FlamePanel() {
  const inverted = useStore((s) => s.inverted);
  const by = useStore((s) => s.flameBy);
  const [sought, setSought] = useState("");
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());
  const [path, setPath] = useState<{ for: string; path: number[] }>({ for: "", path: [] });
  const scopeKey = JSON.stringify([
    useStore((s) => s.scope),
    useStore((s) => s.selected),
    useStore((s) => s.range),
    inverted,
  ]);
  const zoomed = path.for === scopeKey ? path.path : [];
  const answer = useScoped(`flame:${inverted}:${by}:${zoomed.join()}`, (t, scope, signal) => {
    const of = by === "wall" ? {} : { by };
    return store.state.traces[t]!.backend.flame(scope, { inverted, path: zoomed, ...of }, signal);
  });
  const { error, trace, label, waiting } = answer;
  const value = useMemo(() => answer.value && without(answer.value, hidden), [answer.value, hidden]);
  useEffect(() => setHidden(new Set()), [trace]);
  const { functions = [], states } = store.state.traces[trace]?.info ?? {};
  const search = useMemo(() => {
    if (sought === "") return undefined;
    const test = matcher(sought);
    return (func: number) => test(functions[func]?.name ?? "");
  }, [sought, functions]);
  const crumb = (func: number) => visible(forms(functions[func]?.name ?? "?").slice(-1)[0]!);
  return (
    <div class="flame-panel">
      <div class="pane-tools">
        <ScopeChoice />
        <TraceChoice trace={trace} />
        <button
          aria-pressed={inverted}
          onClick={() => store.set({ inverted: !inverted })}
          title="From each function to its callers, by self time"
        >
          <Icon name="flip" /> Bottom-up
        </button>
        {states && (
          <div class="segments" role="radiogroup" aria-label="Time that is added up">
            {TIMES.map(({ id, label: name, title }) => (
              <button role="radio" aria-checked={by === id} title={title} onClick={() => store.set({ flameBy: id })}>
                {name}
              </button>
            ))}
          </div>
        )}
        <label class="filter">
          <Icon name="search" />
          <input
            type="search"
            placeholder="Search the flame graph"
            aria-label="Search the flame graph by regular expression"
            value={sought}
            data-testid="flame-search"
            onInput={(event) => setSought(event.currentTarget.value)}
          />
        </label>
        {[...hidden].map((func) => (
          <span class="chip" data-testid="flame-hidden">
            <span class="name">without {crumb(func)}</span>
            <button
              class="icon"
              aria-label={`Show ${crumb(func)} again`}
              onClick={() => setHidden(changeSet(hidden, func, false))}
            >
              <Icon name="close" />
            </button>
          </span>
        ))}
        {zoomed.length > 0 && (
          <nav class="crumbs" aria-label="Path">
            <button onClick={() => setPath({ for: scopeKey, path: [] })}>{label}</button>
            {zoomed.map((func, i) => (
              <button
                aria-current={i === zoomed.length - 1}
                onClick={() => setPath({ for: scopeKey, path: zoomed.slice(0, i + 1) })}
              >
                {crumb(func)}
              </button>
            ))}
          </nav>
        )}
        <span class="grow" />
        <TimesChoice traces={[trace]} />
        {value && (
          <span class="quiet" role="status" data-testid="flame-sum" data-total={value.total}>
            {search && (
              <b data-testid="flame-found">
                {percent(value.total > 0 ? matched(value, search) / value.total : 0)} found ·{" "}
              </b>
            )}
            {duration(value.total)} · {count(value.calls)} calls
            {value.truncated && " · too many paths: the rest is in “others”"}
          </span>
        )}
        {waiting && value && <Waiting answer={answer} />}
      </div>
      {error ? (
        <Failed message={error} again={answer.again} />
      ) : !value ? (
        <Waiting answer={answer} />
      ) : value.total <= 0 ? (
        <Empty>
          {by === "wall" ? "No time was spent in traced calls here." : "No such time is known of the calls here."}
        </Empty>
      ) : (
        <FlameGraph
          flame={value}
          trace={trace}
          rootLabel={
            zoomed.length > 0 ? crumb(zoomed[zoomed.length - 1]!) : inverted ? `${label}, by self time` : label
          }
          sought={search}
          onHide={(func) => setHidden(changeSet(hidden, func, true))}
          onZoom={(more) => setPath({ for: scopeKey, path: [...zoomed, ...more].filter((f) => f >= 0) })}
        />
      )}
    </div>
  );
}
