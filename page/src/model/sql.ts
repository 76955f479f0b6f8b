// SPDX-License-Identifier: MIT
// What is made of the rows that SQL answers: texts of their values, CSV, and where a row leads in the timeline.
import type { SqlAnswer, SqlColumn, SqlRow } from "../backend/types/sql";
import type { TraceInfo } from "../backend/types/trace";
import { readable, visible } from "./names";
import { size } from "./sizes";
import { duration, exact, percent } from "./time";

/** A number of a row; undefined: it is none. */
export function numberOf(value: string | null | undefined): number | undefined {
  if (value === null || value === undefined || value.trim() === "") return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}

/** In the unit of its column, as other lists of the page have it. */
export function withUnit(number: number, unit: SqlColumn["unit"]): string {
  switch (unit) {
    case "moment":
    case "ns":
      return duration(number);
    case "bytes":
      return number < 0 ? `−${size(-number)}` : size(number);
    case "share":
      return percent(number);
    default:
      return String(number);
  }
}

/** A cell's text. */
export function shown(value: string | null, column: SqlColumn): string {
  if (value === null) return "–";
  if (column.name === "function" || column.name === "caller") return readable(value);
  const number = column.unit === "" ? undefined : numberOf(value);
  return number === undefined ? visible(value) : withUnit(number, column.unit);
}

/** All of a cell, for its title. */
export function whole(value: string | null, { unit }: SqlColumn): string {
  if (value === null) return "NULL";
  const number = numberOf(value);
  if (number === undefined || unit === "") return visible(value);
  if (unit === "moment" || unit === "ns") return exact(number);
  return unit === "bytes" ? `${value} bytes` : value;
}

/** As `karst query --format csv` writes it: texts in quotes where they need them. */
export function csv({ columns, rows }: Pick<SqlAnswer, "columns" | "rows">): string {
  const field = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const line = (values: readonly (string | null)[]) => values.map((value) => field(value ?? "")).join(",");
  return [line(columns.map(({ name }) => name)), ...rows.map(line)].join("\n") + "\n";
}

/** Where a row leads: a moment, in a thread if that is known. Times in the trace's own time. */
export interface Lead {
  readonly begin: number;
  readonly duration: number;
  /** Its place among the trace's threads. */
  readonly thread?: number;
  /** It is the call that began then. */
  readonly isCall: boolean;
}

/** `4505@54731245ns`, as the column `call` and `karst explain --call` have it. */
export function parseCallName(text: string): { tid: number; begin: number } | undefined {
  const found = /^(\d+)@(\d+)ns$/.exec(text);
  return found ? { tid: Number(found[1]), begin: Number(found[2]) } : undefined;
}

/** Thread ids are used again, and by several processes' threads: the one that lived then. */
export function threadAt(info: TraceInfo, tid: number, begin: number, pid?: number): number | undefined {
  const lived = info.threads
    .map((thread, index) => ({ thread, index }))
    .filter(({ thread }) => thread.tid === tid)
    .filter(({ thread }) => pid === undefined || info.processes[thread.process]?.pid === pid);
  const one = lived.find(({ thread }) => thread.begin <= begin && begin <= (thread.end ?? Infinity)) ?? lived[0];
  return one?.index;
}

/** Where rows of these columns lead; undefined: they have no time. */
export function leadsOf(
  columns: readonly SqlColumn[],
  info: TraceInfo,
): ((row: SqlRow) => Lead | undefined) | undefined {
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const moments = columns.flatMap(({ unit, name }, i) => (unit === "moment" && name !== "end_ns" ? [i] : []));
  const call = at("call");
  const time = moments[0] ?? -1;
  if (call < 0 && time < 0) return undefined;
  const [tid, pid, lasts, end] = [at("tid"), at("pid"), at("duration_ns"), at("end_ns")];
  return (row) => {
    const named = parseCallName(row[call] ?? "");
    const begin = named?.begin ?? numberOf(row[time]);
    if (begin === undefined || begin < 0) return undefined;
    const number = named?.tid ?? numberOf(row[tid]);
    const thread = number === undefined ? undefined : threadAt(info, number, begin, numberOf(row[pid]));
    const until = numberOf(row[end]);
    const length = numberOf(row[lasts]) ?? (until === undefined ? 0 : until - begin);
    return {
      begin,
      duration: Math.max(0, length),
      isCall: named !== undefined && thread !== undefined,
      ...(thread === undefined ? {} : { thread }),
    };
  };
}
