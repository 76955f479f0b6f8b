// SPDX-License-Identifier: MIT
// One column of an answer over another: points, axes and their steps.
import type { SqlAnswer, SqlColumn } from "../backend/types/sql";
import { numberOf } from "./sql";
import { step } from "./time";

export interface Axis {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly number[];
}

export interface Points {
  readonly x: Axis;
  readonly y: Axis;
  /** Those rows that have both numbers. */
  readonly points: readonly { readonly x: number; readonly y: number; readonly row: number }[];
}

/** Places of the columns that can be plotted. */
export const numbersOf = (columns: readonly SqlColumn[]): number[] =>
  columns.flatMap(({ kind }, at) => (kind === "number" ? [at] : []));

/** What is plotted unless somebody chooses: a time over when it was, else the first two numbers. */
export function firstPlot(columns: readonly SqlColumn[]): { x: number; y: number } | undefined {
  const numbers = numbersOf(columns);
  if (numbers.length < 2) return undefined;
  const x = numbers.find((at) => columns[at]!.unit === "moment") ?? numbers[0]!;
  const others = numbers.filter((at) => at !== x);
  return { x, y: others.find((at) => columns[at]!.unit === "ns") ?? others[0]! };
}

/** 1, 2 or 5 times a power of ten, at least `atLeast`. */
function plainStep(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(atLeast) + 1e-9);
  return ([1, 2, 5].find((factor) => factor * power >= atLeast * (1 - 1e-9)) ?? 10) * power;
}

/** Around all values; lengths begin at 0. */
export function axis(values: readonly number[], unit: SqlColumn["unit"], most: number): Axis {
  let from = Infinity;
  let to = -Infinity;
  for (const value of values) {
    from = Math.min(from, value);
    to = Math.max(to, value);
  }
  if (from > to) return { from: 0, to: 1, ticks: [] };
  if (unit !== "moment" && from > 0 && from < to) from = 0;
  if (from === to) {
    const room = Math.max(Math.abs(from) / 2, 0.5);
    from -= room;
    to += room;
  }
  const wanted = (to - from) / Math.max(1, most);
  const isTime = (unit === "moment" || unit === "ns") && wanted >= 1;
  const by = isTime ? step(wanted) : plainStep(wanted);
  const ticks: number[] = [];
  for (let n = Math.ceil(from / by - 1e-9); n * by <= to * (1 + 1e-12) && ticks.length <= most + 1; ++n)
    ticks.push(n * by);
  return { from, to, ticks };
}

export function pointsOf({ columns, rows }: SqlAnswer, x: number, y: number, most: { x: number; y: number }): Points {
  const points = rows.flatMap((values, row) => {
    const [a, b] = [numberOf(values[x]), numberOf(values[y])];
    return a === undefined || b === undefined ? [] : [{ x: a, y: b, row }];
  });
  return {
    points,
    x: axis(
      points.map((point) => point.x),
      columns[x]?.unit ?? "",
      most.x,
    ),
    y: axis(
      points.map((point) => point.y),
      columns[y]?.unit ?? "",
      most.y,
    ),
  };
}
