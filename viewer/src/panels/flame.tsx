// Flame graphs: calls merged by path, exact. Also draws the comparison of two sets of calls.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Flame } from "../backend/types";
import { highlight } from "../model/actions";
import { change, pathTo, placeFlame } from "../model/flame";
import { forms, visible } from "../model/names";
import { store, useStore } from "../model/store";
import { count, duration, percent } from "../model/time";
import { currentScene } from "../timeline/steps";
import { Icon } from "./icon";
import { Empty, Failed, Waiting } from "./parts";
import { ScopeChoice, useScoped } from "./scope";

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

export function FlameGraph({
  flame,
  trace,
  rootLabel,
  onZoom,
}: {
  flame: Flame;
  trace: number;
  rootLabel: string;
  onZoom: (path: number[]) => void;
}) {
  const { ref, width } = useWidth();
  const cells = useMemo(() => placeFlame(flame, 1.2 / Math.max(width, 100)), [flame, width]);
  const functions = store.state.traces[trace]?.info.functions ?? [];
  const css = currentScene()?.looks(trace)?.css ?? [];
  const name = (func: number) => functions[func]?.name ?? flame.extraFunctions[func - functions.length] ?? "?";
  const depth = cells.reduce((most, cell) => Math.max(most, cell.depth), 0);
  const marked = useStore((s) => s.highlight);
  return (
    <div class="flame-scroll">
      <div
        class="flame"
        ref={ref}
        role="tree"
        aria-label="Flame graph"
        style={{ height: `${(depth + 1) * ROW}px` }}
        onKeyDown={(event) => {
          const element = event.target as HTMLElement;
          const at = cells.findIndex((cell) => String(cell.node) === element.dataset.node);
          const cell = cells[at];
          if (!cell) return;
          const near = (test: (c: (typeof cells)[number]) => boolean) => cells.find(test);
          const steps: Record<string, () => typeof cell | undefined> = {
            ArrowUp: () => near((c) => c.node === flame.parent[cell.node]),
            ArrowDown: () => near((c) => flame.parent[c.node] === cell.node),
            ArrowRight: () => near((c) => c.depth === cell.depth && c.x > cell.x),
            ArrowLeft: () => [...cells].reverse().find((c) => c.depth === cell.depth && c.x < cell.x),
          };
          const to = steps[event.key]?.();
          if (!event.key.startsWith("Arrow")) return;
          event.preventDefault();
          event.stopPropagation();
          if (to) element.parentElement?.querySelector<HTMLElement>(`[data-node="${to.node}"]`)?.focus();
        }}
      >
        {cells.map((cell) => {
          const func = flame.func[cell.node]!;
          const total = flame.totals[cell.node]!;
          const totalB = flame.b?.totals[cell.node];
          const wide = cell.width * width;
          const all = func >= 0 ? forms(name(func)) : [];
          const fits = (wide > 190 ? wide - 80 : wide - 10) / 6.2;
          const label =
            func === -1
              ? rootLabel
              : func === -2
                ? `${count(flame.merged[cell.node]!)} others`
                : visible(all.find((form) => form.length <= fits) ?? all[all.length - 1]!);
          const delta = totalB === undefined ? undefined : totalB - total;
          const facts =
            delta === undefined
              ? `${duration(total)} (${percent(total / flame.total)}), self ${duration(flame.selfs[cell.node]!)}, ${count(flame.counts[cell.node]!)} calls`
              : `A ${duration(total)} in ${count(flame.counts[cell.node]!)} calls, B ${duration(totalB!)} in ${count(flame.b!.counts[cell.node]!)}: ${delta === 0 ? "the same" : `${duration(Math.abs(delta))} ${delta > 0 ? "longer" : "shorter"}`}`;
          const time =
            delta === undefined
              ? duration(total)
              : `${delta > 0 ? "+" : delta < 0 ? "−" : "±"}${duration(Math.abs(delta))}`;
          const background =
            delta !== undefined
              ? changeColour(change(flame, cell.node))
              : func >= 0
                ? (css[func] ?? "var(--raised)")
                : "var(--raised)";
          return (
            <button
              key={cell.node}
              class={`flame-cell${marked && marked.trace === trace && marked.function === func ? " on" : ""}`}
              role="treeitem"
              aria-level={cell.depth + 1}
              aria-label={delta === undefined ? `${label}: ${facts}` : `${label} ${time}: ${facts}`}
              tabIndex={cell.depth === 0 ? 0 : -1}
              data-node={cell.node}
              data-function={func >= 0 ? name(func) : ""}
              data-self={flame.selfs[cell.node]}
              title={`${func >= 0 ? visible(name(func)) : label}\n${facts}\nClick: only this. Ctrl and click: highlight in the timeline`}
              style={{
                left: `${cell.x * width}px`,
                top: `${cell.depth * ROW}px`,
                width: `${Math.max(1, wide - 1)}px`,
                background,
              }}
              onClick={(event) => {
                if (func >= 0 && (event.ctrlKey || event.metaKey)) highlight(trace, func);
                else if (func !== -2) onZoom(pathTo(flame, cell.node));
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
        })}
      </div>
    </div>
  );
}

export function FlamePanel() {
  const inverted = useStore((s) => s.inverted);
  const [path, setPath] = useState<{ for: string; path: number[] }>({ for: "", path: [] });
  const scopeKey = JSON.stringify([
    useStore((s) => s.scope),
    useStore((s) => s.selected),
    useStore((s) => s.range),
    inverted,
  ]);
  const zoomed = path.for === scopeKey ? path.path : [];
  const answer = useScoped(`flame:${inverted}:${zoomed.join()}`, (t, scope, signal) =>
    store.state.traces[t]!.backend.flame(scope, { inverted, path: zoomed }, signal),
  );
  const { value, error, trace, label, waiting } = answer;
  const functions = store.state.traces[trace]?.info.functions ?? [];
  const crumb = (func: number) => visible(forms(functions[func]?.name ?? "?").slice(-1)[0]!);
  return (
    <div class="flame-panel">
      <div class="pane-tools">
        <ScopeChoice />
        <button
          aria-pressed={inverted}
          onClick={() => store.set({ inverted: !inverted })}
          title="From each function to its callers, by self time"
        >
          <Icon name="flip" /> Bottom-up
        </button>
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
        {value && (
          <span class="quiet" role="status" data-testid="flame-sum" data-total={value.total}>
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
        <Empty>No time was spent in traced calls here.</Empty>
      ) : (
        <FlameGraph
          flame={value}
          trace={trace}
          rootLabel={
            zoomed.length > 0 ? crumb(zoomed[zoomed.length - 1]!) : inverted ? `${label}, by self time` : label
          }
          onZoom={(more) => setPath({ for: scopeKey, path: [...zoomed, ...more].filter((f) => f >= 0) })}
        />
      )}
    </div>
  );
}
