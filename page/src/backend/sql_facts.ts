// SPDX-License-Identifier: MIT
// Answers of SQL as the page's own types. Values in them are a trace's: anything.
import { checkFindings, checkOutcomes } from "./answers";
import { list, num, object, rowOf, text, type Json } from "./rows";
import type { CheckAnswer, SqlAnswer, SqlColumn, SqlRow, SqlSchema, SqlTable } from "./types/sql";

const objects = list(object);
const texts = list(text);
const cells = list((value) => (typeof value === "string" ? value : null));

function oneOf<T extends string>(of: unknown, all: readonly T[], otherwise: T): T {
  return all.find((one) => one === of) ?? otherwise;
}

const column = (of: Json): SqlColumn => ({
  name: text(of.name),
  kind: oneOf(of.kind, ["text", "number", "flag", "nested"], "text"),
  unit: oneOf(of.unit, ["moment", "ns", "bytes", "share", ""], ""),
});

export function sqlAnswer(answer: Json): SqlAnswer {
  const columns = objects(answer.columns).map(column);
  const rows = list((row): SqlRow => {
    const values = cells(row);
    return columns.map((_, at) => values[at] ?? null);
  })(answer.rows);
  return { columns, rows, more: num(answer.more), counted: answer.counted !== false, cut: answer.cut === true };
}

const table = (of: Json): SqlTable => ({
  name: text(of.name),
  sentence: text(of.sentence),
  columns: objects(of.columns).map((one) => ({
    name: text(one.name),
    type: text(one.type),
    sentence: text(one.sentence),
  })),
});

export const sqlSchema = (answer: Json): SqlSchema => ({
  missing: text(answer.missing),
  tables: objects(answer.tables).map(table),
  macros: objects(answer.macros).map((one) => ({ name: text(one.name), sentence: text(one.sentence) })),
});

export const checkAnswer = (answer: Json): CheckAnswer => ({
  findings: objects(answer.findings).map((of) => rowOf(of, checkFindings)),
  outcomes: objects(answer.outcomes).map((of) => rowOf(of, checkOutcomes)),
  failures: texts(answer.failures),
  notices: texts(answer.notices),
});
