// An exported page answers from what it carries: all calls of its range, or, when those were too
// many, one picture and the sums. It says what it does not have instead of showing less.
import { PROTOCOL_VERSION } from "./protocol";
import { byTrack, decodeColumns, decodeMinimap, decodeTiles, unpack, type Columns } from "./decode";
import { Engine } from "./engine";
import { flameFacts, histogramFacts, tableFacts, traceFacts, type Json } from "./facts";
import { activity, callInfo, occurrences, tileRows } from "./local_calls";
import { CPU_LANE, cpuFunctions, LocalStates, STATES_OF_THREAD } from "./local_states";
import {
  BackendError,
  CPU_THREAD,
  type Backend,
  type CallInfo,
  type CallRef,
  type Flame,
  type FlameQuery,
  type FunctionTable,
  type Histogram,
  type OccurrenceQuery,
  type Occurrences,
  type Row,
  type Scope,
  type SourceText,
  type StateLine,
  type TileRequest,
  type TraceInfo,
} from "./types";

const onlyPicture =
  "This file holds one picture and the sums of its range, not each call. Export a shorter range, or look at the trace with `karst view`.";

/** Rows with nothing but one function's slices. */
function onlyOf(rows: Row[], func: number | undefined): Row[] {
  if (func === undefined) return rows;
  return rows.map((row) => {
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
  });
}

export class LocalBackend implements Backend {
  readonly kind = "embedded";
  private facts: TraceInfo;
  private columns: Map<number, Columns> | undefined;
  /** Of states and CPUs. */
  private strips = new Map<number, Columns>();
  private states: LocalStates | undefined;
  private rows: Map<number, Row[]> | undefined;
  picture?: { begin: number; pixelNs: number };
  private minimaps: Uint8Array[] | undefined;

  private constructor(
    private readonly json: Json,
    private readonly engine: Engine,
  ) {
    this.facts = traceFacts(json.trace ?? {});
    if (json.range) this.facts.range = json.range;
    this.facts.canCut = false;
    this.facts.traces = 1;
  }

  /** `engine`: the packed module that the page carries. */
  static async open(json: Json, engine: string): Promise<LocalBackend> {
    if (json.version !== PROTOCOL_VERSION)
      throw new BackendError("This page's data is of another version than the page.");
    const backend = new LocalBackend(json, await Engine.open(engine));
    if (json.kind === "calls") {
      const columns = await unpack(json.columns, true);
      backend.take(decodeColumns(columns), Array.isArray(json.waits) ? json.waits : []);
      backend.engine.take(columns);
    } else {
      const raw = decodeTiles(await unpack(json.tiles, true));
      backend.rows = byTrack(
        raw,
        backend.facts.tracks.map((track) => track.id),
      );
      const { begin, end } = backend.facts.range ?? { begin: 0, end: backend.facts.span };
      backend.picture = { begin, pixelNs: (end - begin) / Math.max(1, Number(json.tiles_width) || 1) };
      backend.facts.aggregated = true;
    }
    if (typeof json.minimap === "string") backend.minimaps = decodeMinimap(await unpack(json.minimap, false));
    return backend;
  }

  private take(all: Map<number, Columns>, waits: readonly Json[]): void {
    this.columns = new Map([...all].filter(([number]) => number < STATES_OF_THREAD));
    this.strips = new Map([...all].filter(([number]) => number >= STATES_OF_THREAD));
    if (this.facts.states) this.states = new LocalStates(this.strips, waits);
  }

  private tilesOf(track: number, begin: number, end: number, width: number, only: number | undefined): Row[] {
    const { kind, owner } = this.facts.tracks.find(({ id }) => id === track) ?? { kind: "", owner: -1 };
    const thread = owner + (kind === "cpu" ? CPU_LANE : kind === "states" ? STATES_OF_THREAD : 0);
    const columns = this.columns?.get(thread) ?? this.strips.get(thread);
    if (!columns) return onlyOf(this.rows?.get(track) ?? [], only);
    const rows = tileRows(columns, begin, end, width, only);
    if (thread < CPU_LANE) return rows;
    const number = (task: number) => this.facts.tasks[task]?.thread ?? -1;
    const lane = rows.find((row) => row.depth === CPU_THREAD);
    return [
      ...rows,
      ...cpuFunctions(lane, (task) => this.columns?.get(number(task)), number, begin, end, (end - begin) / width),
    ];
  }

  trace(): Promise<TraceInfo> {
    return Promise.resolve(this.facts);
  }

  private all(): Map<number, Columns> {
    if (!this.columns) throw new BackendError(onlyPicture);
    return this.columns;
  }

  async tiles({ begin, end, width, levels, function: only }: TileRequest): Promise<Map<number, Row[]>> {
    const result = new Map<number, Row[]>();
    for (const { track, from, to } of levels) {
      const rows = this.tilesOf(track, begin, end, width, only);
      result.set(
        track,
        rows.filter((row) => row.depth >= from && row.depth <= to),
      );
    }
    return result;
  }

  async minimap(width: number): Promise<Uint8Array[]> {
    if (this.minimaps) return this.minimaps;
    return this.facts.threads.map((t) => activity(this.columns?.get(t.index), 0, this.facts.span, width));
  }

  async call(at: CallRef): Promise<CallInfo> {
    const columns = this.all().get(at.thread);
    const info = columns && callInfo(columns, at, this.states);
    if (!info) throw new BackendError("There is no such call in this file.", 404);
    return info;
  }

  async occurrences(query: OccurrenceQuery): Promise<Occurrences> {
    return occurrences(this.all(), query);
  }

  /** A range that takes in the trace's last moment has no end. */
  private within(scope: Scope): Scope {
    const { end, ...rest } = scope;
    return end !== undefined && end < this.facts.span ? scope : rest;
  }

  async histogram(func: number): Promise<Histogram> {
    this.all();
    return histogramFacts(this.engine.histogram(func));
  }

  async functions(scope: Scope): Promise<FunctionTable> {
    if (this.columns) return tableFacts(this.engine.functions(this.within(scope)));
    return tableFacts(this.json.functions ?? {});
  }

  async flame(scope: Scope, query: FlameQuery): Promise<Flame> {
    if (query.b) throw new BackendError("An exported page cannot compare. Open the traces with `karst view A B`.");
    if (this.columns) return flameFacts(this.engine.flame(this.within(scope), query));
    return flameFacts((query.inverted ? this.json.flame_inverted : this.json.flame) ?? {});
  }

  async align(): Promise<never> {
    throw new BackendError("An exported page cannot compare. Open the traces with `karst view`.");
  }

  async search(pattern: string): Promise<{ functions: number[]; calls: number }> {
    let expression: RegExp;
    try {
      expression = new RegExp(pattern);
    } catch (error) {
      throw new BackendError((error as Error).message, 400);
    }
    const found = this.facts.functions
      .map((f, index) => ({ index, calls: f.calls, name: f.name }))
      .filter((f) => expression.test(f.name))
      .sort((a, b) => b.calls - a.calls);
    return { functions: found.map((f) => f.index), calls: found.reduce((sum, f) => sum + f.calls, 0) };
  }

  async source(func: number): Promise<SourceText> {
    const { file, line } = this.facts.functions[func] ?? { file: "", line: 0 };
    const source = (this.json.sources as { path: string; text: string }[] | undefined)?.find((s) => s.path === file);
    if (!source) throw new BackendError(file ? `The text of ${file} is not in this file.` : "No source is known.", 404);
    return { path: file, line, endLine: this.engine.endLine(source.text, line), firstLine: 1, text: source.text };
  }

  async state(thread: number, index: number): Promise<StateLine> {
    const line = this.states?.line(thread, index);
    if (!line) throw new BackendError(onlyPicture);
    return line;
  }

  cutAddress(): undefined {
    return undefined;
  }
}
