// SPDX-License-Identifier: MIT
// One column of an answer over another, a dot a row. A click on a dot leads where its row does.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SqlAnswer, SqlColumn } from "../backend/types/sql";
import { goToLead } from "../model/leads";
import { visible } from "../model/names";
import { firstPlot, numbersOf, pointsOf, type Axis, type Points } from "../model/plot";
import { leadsOf, withUnit } from "../model/sql";
import { store, useStore } from "../model/store";
import { moment } from "../model/time";
import { Empty } from "./parts";

const EDGE = { left: 84, right: 20, top: 10, bottom: 38 };
const DOT = 2.5;
const NEAR = 8; // pixels

type Size = { width: number; height: number };

/** Where values lie in the picture. */
function places({ x, y }: Points, { width, height }: Size) {
  const across = width - EDGE.left - EDGE.right;
  const down = height - EDGE.top - EDGE.bottom;
  return {
    x: (value: number) => EDGE.left + ((value - x.from) / (x.to - x.from)) * across,
    y: (value: number) => EDGE.top + down - ((value - y.from) / (y.to - y.from)) * down,
  };
}

function tickText(value: number, { ticks, to }: Axis, unit: SqlColumn["unit"]): string {
  const by = ticks.length > 1 ? ticks[1]! - ticks[0]! : 0;
  if ((unit === "moment" || unit === "ns") && by >= 1) return moment(value, by, to);
  if (unit === "bytes" || unit === "share") return withUnit(value, unit);
  return String(Number(value.toPrecision(10)));
}

function draw(canvas: HTMLCanvasElement, points: Points, size: Size, units: { x: SqlColumn; y: SqlColumn }): void {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(size.width * scale);
  canvas.height = Math.round(size.height * scale);
  const context = canvas.getContext("2d")!;
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  context.scale(scale, scale);
  context.font = style.font;
  context.lineWidth = 1;
  const at = places(points, size);
  const bottom = size.height - EDGE.bottom;
  context.strokeStyle = colour("--rule");
  context.fillStyle = colour("--quiet");
  context.textAlign = "center";
  context.textBaseline = "top";
  context.beginPath();
  for (const tick of points.x.ticks) {
    const x = Math.round(at.x(tick)) + 0.5;
    context.moveTo(x, EDGE.top);
    context.lineTo(x, bottom);
    context.fillText(tickText(tick, points.x, units.x.unit), x, bottom + 4);
  }
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of points.y.ticks) {
    const y = Math.round(at.y(tick)) + 0.5;
    context.moveTo(EDGE.left, y);
    context.lineTo(size.width - EDGE.right, y);
    context.fillText(tickText(tick, points.y, units.y.unit), EDGE.left - 6, y);
  }
  context.stroke();
  context.fillStyle = colour("--text");
  context.textAlign = "right";
  context.textBaseline = "bottom";
  context.fillText(visible(units.x.name), size.width - EDGE.right, size.height - 2);
  context.textAlign = "left";
  context.textBaseline = "top";
  context.fillText(visible(units.y.name), EDGE.left + 5, EDGE.top + 3);
  context.fillStyle = colour("--accent");
  context.globalAlpha = points.points.length > 500 ? 0.5 : 0.85;
  for (const point of points.points) {
    context.beginPath();
    context.arc(at.x(point.x), at.y(point.y), DOT, 0, 2 * Math.PI);
    context.fill();
  }
}

function nearest(points: Points, size: Size, x: number, y: number): number | undefined {
  const at = places(points, size);
  let found: number | undefined;
  let least = NEAR * NEAR;
  for (const point of points.points) {
    const away = (at.x(point.x) - x) ** 2 + (at.y(point.y) - y) ** 2;
    if (away <= least) [least, found] = [away, point.row];
  }
  return found;
}

function Choice({ label, columns, of, set }: Chosen & { label: string; columns: readonly SqlColumn[] }) {
  return (
    <label>
      {label}{" "}
      <select value={String(of)} onChange={(event) => set(Number(event.currentTarget.value))} aria-label={label}>
        {numbersOf(columns).map((at) => (
          <option value={String(at)}>{visible(columns[at]!.name)}</option>
        ))}
      </select>
    </label>
  );
}
type Chosen = { of: number; set: (at: number) => void };

export function SqlPlot({ answer, trace }: { answer: SqlAnswer; trace: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<Size>({ width: 400, height: 200 });
  const names = answer.columns.map(({ name }) => name).join("\n");
  const [chosen, choose] = useState<{ x: number; y: number; of: string }>();
  const theme = useStore((s) => s.theme);
  const plot = chosen?.of === names ? chosen : firstPlot(answer.columns);
  const units = plot && { x: answer.columns[plot.x]!, y: answer.columns[plot.y]! };
  const points = useMemo(
    () => plot && pointsOf(answer, plot.x, plot.y, { x: size.width / 110, y: size.height / 45 }),
    [answer, plot?.x, plot?.y, size],
  );
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() =>
      setSize({ width: Math.max(160, element.clientWidth), height: Math.max(100, element.clientHeight) }),
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [plot === undefined]);
  useEffect(() => {
    if (canvas.current && points && units) draw(canvas.current, points, size, units);
  }, [points, size, theme]);
  if (!plot || !units || !points) return <Empty>A plot needs two columns of numbers.</Empty>;
  const go = (event: MouseEvent) => {
    const { left, top } = canvas.current!.getBoundingClientRect();
    const row = nearest(points, size, event.clientX - left, event.clientY - top);
    const lead =
      row === undefined ? undefined : leadsOf(answer.columns, store.state.traces[trace]!.info)?.(answer.rows[row]!);
    if (lead) void goToLead(trace, lead, "query");
  };
  const set = (change: { x?: number; y?: number }) => choose({ x: plot.x, y: plot.y, of: names, ...change });
  return (
    <div class="sql-plot">
      <div class="sql-axes">
        <Choice label="Plot" columns={answer.columns} of={plot.y} set={(y) => set({ y })} />
        <Choice label="over" columns={answer.columns} of={plot.x} set={(x) => set({ x })} />
      </div>
      <div class="sql-dots" ref={box}>
        <canvas
          ref={canvas}
          style={{ width: `${size.width}px`, height: `${size.height}px` }}
          role="img"
          data-testid="sql-plot"
          data-points={points.points.length}
          aria-label={`${visible(units.y.name)} over ${visible(units.x.name)}, ${points.points.length} dots`}
          onClick={go}
        />
      </div>
    </div>
  );
}
