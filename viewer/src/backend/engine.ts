// The engine of an exported page: Karst's own (query/ in C++), compiled to WebAssembly. It answers as the server does, in the
// same JSON. viewer/engine/engine.cc is the other side.
import { unpack } from "./decode";
import type { Json } from "./facts";
import { BackendError, type FlameQuery, type Scope } from "./types";

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  karst_room(size: number): number;
  karst_open(): number;
  karst_reply(): number;
  karst_reply_size(): number;
  karst_functions(): number;
  karst_histogram(): number;
  karst_flame(): number;
  karst_end_line(line: number): number;
}

const kNone = 0xffffffff;
const kQuestionBytes = 40;

export class Engine {
  private broken = false;

  private constructor(private readonly module: Exports) {}

  /** `packed`: the module as the page carries it. */
  static async open(packed: string): Promise<Engine> {
    const { instance } = await WebAssembly.instantiate(await unpack(packed, true), {});
    const module = instance.exports as unknown as Exports;
    module._initialize();
    return new Engine(module);
  }

  /** The calls to be asked about, as decodeColumns takes them. */
  take(columns: ArrayBuffer): void {
    this.write(new Uint8Array(columns));
    if (this.run(() => this.module.karst_open()) === 0)
      throw new BackendError("This page's data is damaged: its calls cannot be read.");
  }

  functions(scope: Scope): Json {
    return this.ask("karst_functions", scope, {});
  }

  histogram(func: number): Json {
    return this.ask("karst_histogram", { function: func }, {});
  }

  flame(scope: Scope, query: FlameQuery): Json {
    return this.ask("karst_flame", scope, query);
  }

  /** The line of the brace that closes the function that starts at `line` (from 1); `line` itself when there is none. */
  endLine(text: string, line: number): number {
    return this.run(() => {
      this.write(new TextEncoder().encode(text));
      return this.module.karst_end_line(line);
    });
  }

  private ask(name: "karst_functions" | "karst_histogram" | "karst_flame", scope: Scope, query: FlameQuery): Json {
    const threads = scope.threads ?? [];
    const path = query.path ?? [];
    const bytes = new Uint8Array(kQuestionBytes + 4 * (threads.length + path.length));
    const view = new DataView(bytes.buffer);
    view.setFloat64(0, scope.begin ?? NaN, true);
    view.setFloat64(8, scope.end ?? NaN, true);
    const one = scope.thread !== undefined && scope.index !== undefined;
    const numbers = [
      one ? scope.thread! : kNone,
      one ? scope.index! : kNone,
      scope.function ?? kNone,
      query.inverted ? 1 : 0,
      scope.threads ? threads.length : kNone,
      path.length,
      ...threads,
      ...path,
    ];
    numbers.forEach((value, i) => view.setUint32(16 + 4 * i, value, true));
    return this.run(() => {
      this.write(bytes);
      if (this.module[name]() === 0) throw new BackendError("There is no such thing in this file.", 404);
      const reply = new Uint8Array(
        this.module.memory.buffer,
        this.module.karst_reply(),
        this.module.karst_reply_size(),
      );
      return JSON.parse(new TextDecoder().decode(reply)) as Json;
    });
  }

  private write(bytes: Uint8Array): void {
    this.run(() => {
      const at = this.module.karst_room(bytes.length);
      new Uint8Array(this.module.memory.buffer).set(bytes, at);
    });
  }

  /** A module that ended has no sound memory left. */
  private run<T>(work: () => T): T {
    if (!this.broken) {
      try {
        return work();
      } catch (error) {
        if (error instanceof BackendError) throw error;
        this.broken = true;
      }
    }
    throw new BackendError(
      "Memory is out for this answer. Reload the page and ask about a shorter range, or look at the trace with `karst view`.",
    );
  }
}
