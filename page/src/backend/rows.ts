// Rows of an answer, which come as a list for each field, to objects. What is missing gets a value that shows as
// nothing: a page must not fail because a field does.
import type { Json } from "./facts";

type Reads<Value> = (value: unknown) => Value;

/** For each property of a row the list that holds it, and what reads its values. */
export type Columns<Row> = { readonly [Name in keyof Row]: readonly [key: string, reads: Reads<Row[Name]>] };

export const num: Reads<number> = (value) => (typeof value === "number" ? value : 0);
export const text: Reads<string> = (value) => (typeof value === "string" ? value : "");
export const flag: Reads<boolean> = (value) => value === true;
/** Of a function, a thread or a process among the trace's; -1: it has none. */
export const place: Reads<number> = (value) => (typeof value === "number" ? value : -1);
export const maybe =
  <Value>(reads: Reads<Value>): Reads<Value | null> =>
  (value) =>
    value === null || value === undefined ? null : reads(value);

export function rowsOf<Row>(lists: Json, columns: Columns<Row>): Row[] {
  const names = Object.keys(columns) as (keyof Row)[];
  const values = names.map(
    (name) => (Array.isArray(lists[columns[name][0]]) ? lists[columns[name][0]] : []) as unknown[],
  );
  const count = Math.max(0, ...values.map((list) => list.length));
  return Array.from({ length: count }, (_, row) => {
    const made = {} as Row;
    names.forEach((name, i) => (made[name] = columns[name][1](values[i]![row])));
    return made;
  });
}

/** Rows within a row; `columns` is asked for late, as relations may stand in any order. */
export const rowsIn =
  <Row>(columns: () => Columns<Row>): Reads<Row[]> =>
  (value) =>
    rowsOf((value ?? {}) as Json, columns());

/** An answer that is one row. */
export function rowOf<Row>(values: Json, columns: Columns<Row>): Row {
  const made = {} as Row;
  for (const name of Object.keys(columns) as (keyof Row)[]) made[name] = columns[name][1](values[columns[name][0]]);
  return made;
}
