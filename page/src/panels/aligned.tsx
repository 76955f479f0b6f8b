// SPDX-License-Identifier: MIT
// Two calls or threads one above the other, their flows aligned: what is longer in B is red, what is shorter blue, what
// only one side has is hatched.
import { useMemo, useState } from "preact/hooks";
import type { Alignment, AlignSide as AlignedSide } from "../backend/types/sums";
import { lookAt } from "../model/actions";
import { alignedChange, placeAlignment } from "../model/align";
import { forms, visible } from "../model/names";
import { store, useStore } from "../model/store";
import { duration, percent } from "../model/time";
import { useAnswer } from "./answers";
import { changeColour, useWidth } from "./flame";
import { Empty, Failed, Waiting } from "./parts";

const ROW = 19;
const MOST_LEVELS = 60;

export type { AlignedSide };

interface Zoom {
  id: string;
  path: [AlignedSide, AlignedSide][];
}

function words(of: Alignment, node: number): string {
  const [a, b] = [of.took[0][node]!, of.took[1][node]!];
  if (!of.has[1][node]) return `only in A: ${duration(a)}`;
  if (!of.has[0][node]) return `only in B: ${duration(b)}`;
  const by = b - a;
  const change =
    by === 0
      ? "the same"
      : `${duration(Math.abs(by))} ${by > 0 ? "longer" : "shorter"}${a > 0 ? `, ${percent(Math.abs(by) / a)}` : ""}`;
  return `A ${duration(a)}, B ${duration(b)}: ${change}`;
}

function Picture({
  of,
  sides,
  onZoom,
}: {
  of: Alignment;
  sides: [AlignedSide, AlignedSide];
  onZoom: (to: [AlignedSide, AlignedSide]) => void;
}) {
  const { ref, width } = useWidth();
  const { boxes, width: total } = useMemo(() => placeAlignment(of), [of]);
  const functions = store.state.traces[sides[0].trace]?.info.functions ?? [];
  const name = (node: number) => {
    const func = of.func[node]!;
    if (func < 0) return "everything";
    return functions[func]?.name ?? of.extraFunctions[func - functions.length] ?? "?";
  };
  const scale = total > 0 ? width / total : 0;
  const wide = boxes.filter(
    (box) => box.depth < MOST_LEVELS && box.at.some((at) => at && (at[1] - at[0]) * scale >= 1.2),
  );
  const levels = wide.reduce((most, box) => Math.max(most, box.depth + 1), 1);
  const choose = (node: number) => {
    if (of.has[0][node] && of.has[1][node] && of.index[0][node]! >= 0 && of.index[1][node]! >= 0)
      onZoom([
        { ...sides[0], index: of.index[0][node]! },
        { ...sides[1], index: of.index[1][node]! },
      ]);
    else show(node);
  };
  const show = (node: number) => {
    const side = of.has[0][node] ? 0 : 1;
    const index = of.index[side][node]!;
    if (index >= 0) void lookAt({ trace: sides[side].trace, thread: sides[side].thread, index });
  };
  return (
    <div class="flame-scroll aligned">
      {/* As wide as what is drawn: without padding and scroll bar. */}
      <div ref={ref} />
      {([0, 1] as const).map((side) => (
        <div
          class="flame"
          role="tree"
          aria-label={side === 0 ? "A" : "B"}
          data-testid={`aligned-${side === 0 ? "a" : "b"}`}
          style={{ height: `${levels * ROW + 6}px` }}
          onKeyDown={(event) => {
            const to = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
            if (to === undefined) return;
            event.preventDefault();
            event.stopPropagation();
            const all = [...event.currentTarget.querySelectorAll<HTMLElement>("button")];
            all[all.indexOf(event.target as HTMLElement) + to]?.focus();
          }}
        >
          {wide.map((box) => {
            const at = box.at[side];
            if (!at) return null;
            const pixels = (at[1] - at[0]) * scale;
            const by = alignedChange(of, box.node);
            const alone = !of.has[0][box.node] || !of.has[1][box.node];
            const all = forms(name(box.node));
            const fits = (pixels > 170 ? pixels - 76 : pixels - 8) / 6.2;
            const facts = words(of, box.node);
            return (
              <button
                key={box.node}
                class={`flame-cell${alone ? ` alone ${side === 0 ? "a" : "b"}` : ""}`}
                role="treeitem"
                aria-level={box.depth + 1}
                aria-label={`${name(box.node)}: ${facts}`}
                tabIndex={box.depth === 0 ? 0 : -1}
                data-node={box.node}
                title={`${visible(name(box.node))}\n${facts}\n${alone ? "Click: show it" : "Click: only this. Ctrl and click: show it"}`}
                style={{
                  left: `${at[0] * scale}px`,
                  top: `${box.depth * ROW}px`,
                  width: `${Math.max(1, pixels - 1)}px`,
                  backgroundColor: changeColour(by),
                }}
                onClick={(event) => (event.ctrlKey || event.metaKey ? show(box.node) : choose(box.node))}
              >
                {pixels > 28 && (
                  <>
                    <span class="flame-name">
                      {visible(all.find((form) => form.length <= fits) ?? all[all.length - 1]!)}
                    </span>
                    {pixels > 170 && <span class="flame-time">{duration(of.took[side][box.node]!)}</span>}
                  </>
                )}
              </button>
            );
          })}
          <span class="aligned-name">{side === 0 ? "A" : "B"}</span>
        </div>
      ))}
    </div>
  );
}

/** A thread of each side, where whole threads are compared. */
function Threads({
  sides,
  onChange,
}: {
  sides: [AlignedSide, AlignedSide];
  onChange: (sides: [AlignedSide, AlignedSide]) => void;
}) {
  return (
    <>
      {sides.map((side, i) => (
        <label class="aligned-thread">
          {i === 0 ? "A" : "B"}
          <select
            aria-label={`Thread of ${i === 0 ? "A" : "B"}`}
            value={side.thread}
            onChange={(event) => {
              const next: [AlignedSide, AlignedSide] = [...sides];
              next[i] = { ...side, thread: Number(event.currentTarget.value) };
              onChange(next);
            }}
          >
            {store.state.traces[side.trace]!.info.threads.map((thread) => (
              <option value={thread.index}>{visible(`${thread.name} ${thread.tid}`)}</option>
            ))}
          </select>
        </label>
      ))}
    </>
  );
}

/** The busiest thread of the first trace, and the one of the second that has its name. */
export function mainThreads(): [AlignedSide, AlignedSide] {
  const busiest = (trace: number, name?: string) => {
    const threads = store.state.traces[trace]!.info.threads;
    const named = threads.filter((thread) => thread.name === name);
    return (named.length > 0 ? named : threads).reduce((a, b) => (b.calls > a.calls ? b : a));
  };
  const a = busiest(0);
  return [
    { trace: 0, thread: a.index },
    { trace: 1, thread: busiest(1, a.name).index },
  ];
}

export function Aligned({ sides: given }: { sides: [AlignedSide, AlignedSide] }) {
  const id = JSON.stringify(given);
  const [chosen, setChosen] = useState<{ id: string; sides: [AlignedSide, AlignedSide] }>();
  const [zoom, setZoom] = useState<Zoom>({ id, path: [] });
  const start = chosen?.id === id ? chosen.sides : given;
  const key = JSON.stringify(start);
  const path = zoom.id === key ? zoom.path : [];
  const sides = path[path.length - 1] ?? start;
  useStore((s) => s.traces);
  const raw = useStore((s) => s.raw);
  const answer = useAnswer(`${JSON.stringify(sides)}|${raw}`, (signal) =>
    store.state.traces[sides[0].trace]!.backend.align(sides[0], sides[1], raw, signal),
  );
  return (
    <div class="aligned-panel">
      <div class="pane-tools">
        {start[0].index === undefined && <Threads sides={start} onChange={(next) => setChosen({ id, sides: next })} />}
        {path.length > 0 && (
          <>
            <button onClick={() => setZoom({ id: key, path: [] })}>Whole</button>
            <button onClick={() => setZoom({ id: key, path: path.slice(0, -1) })}>Back</button>
          </>
        )}
        {answer.value && (
          <span class="quiet" data-testid="aligned-sum">
            {words(answer.value, 0)}
            {answer.value.truncated && " · not all is shown: choose a part"}
          </span>
        )}
        {answer.waiting && answer.value && <Waiting answer={answer} />}
      </div>
      {answer.error ? (
        <Failed message={answer.error} again={answer.again} />
      ) : !answer.value ? (
        <Waiting answer={answer} />
      ) : answer.value.parent.length === 0 ? (
        <Empty>There is nothing to compare.</Empty>
      ) : (
        <Picture of={answer.value} sides={sides} onZoom={(to) => setZoom({ id: key, path: [...path, to] })} />
      )}
    </div>
  );
}
