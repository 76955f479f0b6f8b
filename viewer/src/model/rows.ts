// Ordering and filtering the table of functions.
import type { FunctionRow } from "../backend/types/sums";
import type { SortKey } from "./store";

/** A person's filter: a regular expression, or plain text when it is not one. Small letters match both. */
export function matcher(filter: string): { test: (name: string) => boolean; error?: string } {
  if (filter === "") return { test: () => true };
  const flags = /[A-Z]/.test(filter) ? "" : "i";
  try {
    const expression = new RegExp(filter, flags);
    return { test: (name) => expression.test(name) };
  } catch (error) {
    const plain = filter.toLowerCase();
    return { test: (name) => name.toLowerCase().includes(plain), error: (error as Error).message };
  }
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
