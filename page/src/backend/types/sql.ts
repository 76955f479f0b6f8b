// SPDX-License-Identifier: MIT
// What SQL answers, and what the detectors of `karst check` find: api/query, api/check and api/schema.

import type { CheckFinding, Outcome } from "../answers";

export interface SqlColumn {
  name: string;
  kind: "text" | "number" | "flag" | "nested";
  /** Of a number: ns since the trace's first event, ns, bytes, 0 to 1; empty: none. */
  unit: "moment" | "ns" | "bytes" | "share" | "";
}

/** A value as DuckDB writes it; null: SQL's NULL. */
export type SqlRow = readonly (string | null)[];

export interface SqlAnswer {
  columns: readonly SqlColumn[];
  rows: readonly SqlRow[];
  /** Rows beyond these; not `counted`: there are more than so many. */
  more: number;
  counted: boolean;
  /** Some texts were too long and are cut. */
  cut: boolean;
}

export interface SqlTable {
  name: string;
  sentence: string;
  columns: readonly { name: string; type: string; sentence: string }[];
}

export interface SqlSchema {
  /** Why nothing can be asked; empty: it can. */
  missing: string;
  tables: readonly SqlTable[];
  macros: readonly { name: string; sentence: string }[];
}

export interface CheckAnswer {
  findings: readonly CheckFinding[];
  outcomes: readonly Outcome[];
  /** Detectors of the user's that cannot be used, and other files that are not read, with why. */
  failures: readonly string[];
  notices: readonly string[];
}
