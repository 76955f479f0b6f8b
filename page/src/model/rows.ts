// SPDX-License-Identifier: MIT
// Ordering and filtering the table of functions.
import type { FunctionRow } from "../backend/types/sums";
import { isShownIn } from "./names";
import type { SortKey } from "./store";

/** A person's filter: a part of a name, or a regular expression. Small letters match both. */
export function matcher(filter: string): (name: string) => boolean {
  const anyCase = !/[A-Z]/.test(filter);
  let expression: RegExp | undefined;
  try {
    expression = new RegExp(filter, anyCase ? "i" : "");
  } catch {
    // It is a text alone.
  }
  return (name) =>
    expression?.test(name) === true || isShownIn(name, filter) || (anyCase && name.toLowerCase().includes(filter));
}

export function sortRows<Row extends FunctionRow>(
  rows: readonly Row[],
  nameOf: (row: Row) => string | undefined,
  key: SortKey,
  ascending: boolean,
): Row[] {
  const sign = ascending ? 1 : -1;
  const name = (row: Row) => nameOf(row) ?? "";
  return [...rows].sort((a, b) => {
    if (key === "name") return -sign * name(b).localeCompare(name(a), "en");
    // Rows without a number come last, whichever way.
    const [x, y] = [a[key], b[key]];
    if (x === null || y === null) return x === y ? a.function - b.function : x === null ? 1 : -1;
    return sign * (x - y) || a.function - b.function;
  });
}
