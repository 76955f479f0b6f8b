// SPDX-License-Identifier: MIT
// A page that holds too many calls to carry them: one picture of its range, and the answers about all of it, written
// down when the page was made. It says what it does not have instead of showing less.
import { RE2JS } from "re2js";
import { isShownIn } from "../model/names";
import { decodeTiles, unpack, type RawTiles } from "./decode";
import type { Json } from "./facts";
import { PROTOCOL_VERSION } from "./protocol";
import type { Parameters, Transport } from "./transport";
import { BackendError } from "./types/backend";
import type { Row } from "./types/tiles";

const onlyPicture =
  "This file holds one picture and the sums, not each call. Export a shorter range, or look at the trace with `karst view`.";

/** Nothing but one function's slices. */
function onlyOf(row: Row, func: number): Row {
  const at = [...row.func.keys()].filter((i) => row.func[i] === func);
  const pick = <T extends Float64Array | Uint32Array | Uint8Array>(column: T): T => {
    const make = column.constructor as new (values: number[]) => T;
    return new make(at.map((i) => column[i]!));
  };
  return {
    depth: row.depth,
    begin: pick(row.begin),
    duration: pick(row.duration),
    func: pick(row.func),
    index: pick(row.index),
    count: pick(row.count),
    flags: pick(row.flags),
    density: pick(row.density),
  };
}

export class Recorded implements Transport {
  readonly kind = "embedded";
  readonly picture: { readonly begin: number; readonly pixelNs: number };

  private constructor(
    private readonly page: Json,
    private readonly picked: RawTiles,
    private readonly minimap: ArrayBuffer,
  ) {
    const { begin = 0, end = 0 } = page.range ?? {};
    this.picture = { begin, pixelNs: (end - begin) / Math.max(1, Number(page.tiles_width) || 1) };
  }

  static async open(page: Json): Promise<Recorded> {
    if (page.version !== PROTOCOL_VERSION)
      throw new BackendError("This page's data is of another version than the page.");
    return new Recorded(page, decodeTiles(await unpack(page.tiles, true)), await unpack(page.minimap, false));
  }

  async json(path: string, parameters: Parameters): Promise<Json> {
    switch (path) {
      case "trace":
        return { ...this.page.trace, range: this.partial ? this.page.range : undefined, aggregated: true };
      case "functions":
        return this.page.functions;
      case "flame":
        if ("b.trace" in parameters || parameters.by !== undefined) break;
        return parameters.inverted ? this.page.flame_inverted : this.page.flame;
      case "search":
        return this.search(String(parameters.q));
      case "source":
        return this.source(Number(parameters.function));
    }
    throw new BackendError(onlyPicture, 404);
  }

  async bytes(_path: string, { of }: Parameters): Promise<ArrayBuffer> {
    if (of !== undefined) throw new BackendError(onlyPicture, 404);
    return this.minimap;
  }

  /** The levels asked for are among those that are there. */
  async tiles({ function: only }: Parameters): Promise<RawTiles> {
    if (only === undefined) return this.picked;
    return { rows: this.picked.rows.map(({ track, row }) => ({ track, row: onlyOf(row, Number(only)) })) };
  }

  /** Whether it is about a part of the trace's time. */
  private get partial(): boolean {
    const { begin = 0, end = 0 } = this.page.range ?? {};
    return begin > 0 || end < (this.page.trace?.span ?? 0);
  }

  private search(pattern: string): Json {
    let expression: RE2JS | undefined;
    try {
      expression = RE2JS.compile(pattern);
    } catch {
      // It is a text alone.
    }
    const names: string[] = this.page.trace?.functions?.name ?? [];
    const calls: number[] = this.page.trace?.functions?.calls ?? [];
    const functions = names.flatMap((name, i) =>
      expression?.matcher(name).find() || isShownIn(name, pattern) ? [i] : [],
    );
    functions.sort((a, b) => calls[b]! - calls[a]!);
    return { functions, calls: functions.reduce((sum, i) => sum + (calls[i] ?? 0), 0) };
  }

  private source(func: number): Json {
    const answer = (this.page.sources as Json[]).find((source) => source.functions?.[func] !== undefined);
    if (!answer) throw new BackendError("The text of this function's file is not in this page.", 404);
    const [line, endLine] = answer.functions[func];
    return { path: answer.path, line, end_line: endLine, first_line: 1, text: answer.text };
  }
}
