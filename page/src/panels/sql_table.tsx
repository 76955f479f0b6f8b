// SPDX-License-Identifier: MIT
// Rows that SQL answered. Rows beyond the screen are not in the page. A row with a time or a call leads there.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SqlAnswer, SqlColumn } from "../backend/types/sql";
import { goToLead } from "../model/leads";
import { visible } from "../model/names";
import { leadsOf, shown, whole } from "../model/sql";
import { store } from "../model/store";

const ROW = 24;
const MOST_LETTERS = 60;
const UNIT_WORDS = { moment: "after the trace’s first event", ns: "time", bytes: "bytes", share: "share", "": "" };

/** In letters, so that a column stays as wide as it is while rows come and go. */
function widthsOf({ columns, rows }: SqlAnswer): number[] {
  return columns.map((column, at) => {
    let most = visible(column.name).length;
    for (const row of rows) most = Math.max(most, Math.min(MOST_LETTERS, shown(row[at] ?? null, column).length));
    return Math.min(MOST_LETTERS, most) + 3;
  });
}

const isRight = ({ kind }: SqlColumn) => kind === "number";

function useHeight(box: { current: HTMLElement | null }): number {
  const [height, setHeight] = useState(300);
  useEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return height;
}

export function SqlTable({ answer, trace }: { answer: SqlAnswer; trace: number }) {
  const box = useRef<HTMLDivElement>(null);
  const height = useHeight(box);
  const [top, setTop] = useState(0);
  const [at, setAt] = useState(0);
  const { columns, rows } = answer;
  const widths = useMemo(() => widthsOf(answer), [answer]);
  const leads = useMemo(() => leadsOf(columns, store.state.traces[trace]!.info), [answer, trace]);
  useEffect(() => {
    setAt(0);
    if (box.current) box.current.scrollTop = 0;
  }, [answer]);
  const first = Math.max(0, Math.floor(top / ROW) - 4);
  const last = Math.min(rows.length, first + Math.ceil(height / ROW) + 9);
  const focus = (to: number) => {
    const next = Math.min(rows.length - 1, Math.max(0, to));
    const element = box.current!;
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    else if ((next + 2) * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = (next + 2) * ROW - element.clientHeight;
    setAt(next);
    requestAnimationFrame(() => element.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus());
  };
  const go = (row: number) => {
    setAt(row);
    const lead = leads?.(rows[row]!);
    if (lead) void goToLead(trace, lead, "query");
  };
  const keys = (event: KeyboardEvent, row: number) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (by !== undefined) focus(row + by);
    else if (event.key === "Enter" || event.key === " ") go(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="sql-table" ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)} tabIndex={-1}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th
                class={isRight(column) ? "num" : ""}
                style={{ minWidth: `${widths[i]}ch` }}
                title={UNIT_WORDS[column.unit]}
              >
                {visible(column.name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr class="room" style={{ height: `${first * ROW}px` }} aria-hidden="true" />}
          {rows.slice(first, last).map((row, k) => {
            const i = first + k;
            const lead = leads?.(row);
            return (
              <tr
                key={i}
                data-row={i}
                data-testid="sql-row"
                aria-rowindex={i + 2}
                class={lead ? "leads" : ""}
                tabIndex={i === at ? 0 : -1}
                title={lead ? "Click or Enter: go there" : ""}
                onClick={() => getSelection()?.isCollapsed !== false && go(i)}
                onKeyDown={(event) => keys(event, i)}
              >
                {columns.map((column, c) => (
                  <td
                    class={isRight(column) ? "num" : ""}
                    style={{ maxWidth: `${widths[c]}ch` }}
                    title={whole(row[c] ?? null, column)}
                  >
                    {shown(row[c] ?? null, column)}
                  </td>
                ))}
              </tr>
            );
          })}
          {last < rows.length && (
            <tr class="room" style={{ height: `${(rows.length - last) * ROW}px` }} aria-hidden="true" />
          )}
        </tbody>
      </table>
    </div>
  );
}
