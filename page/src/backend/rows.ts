// SPDX-License-Identifier: MIT
// Rows of an answer, which come as a list for each field, to objects. What is missing gets a value that shows as
// nothing: a page must not fail because a field does.
// `Json` is what JSON.parse gives, taken apart field by field.
export type Json = Record<string, any>;
export const object = (value: unknown): Json => (typeof value === "object" && value !== null ? value : {});

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

export const list =
  <Value>(reads: Reads<Value>): Reads<Value[]> =>
  (values) =>
    Array.isArray(values) ? values.map(reads) : [];

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

/**
 * Rows within a row: a list for each field, or objects where they have rows themselves. `columns` is asked for late, as
 * relations may stand in any order.
 */
export const rowsIn =
  <Row>(columns: () => Columns<Row>): Reads<Row[]> =>
  (value) =>
    Array.isArray(value) ? value.map((one) => rowOf(object(one), columns())) : rowsOf(object(value), columns());

/** A row within a row. */
export const rowIn =
  <Row>(columns: () => Columns<Row>): Reads<Row | null> =>
  (value) =>
    value === null || value === undefined ? null : rowOf(object(value), columns());

/** An answer that is one row. */
export function rowOf<Row>(values: Json, columns: Columns<Row>): Row {
  const made = {} as Row;
  for (const name of Object.keys(columns) as (keyof Row)[]) made[name] = columns[name][1](values[columns[name][0]]);
  return made;
}
