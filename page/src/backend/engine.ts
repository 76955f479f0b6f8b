// SPDX-License-Identifier: MIT
// The engine that a page without a server carries: Karst's own reader and answers, compiled to WebAssembly. It answers
// as the server does. page/engine/engine.cc is the other side.
import { decodeTiles, unpack, type RawTiles } from "./decode";
import type { Json } from "./facts";
import { address, engineImports } from "./imports";
import type { Parameters, Transport } from "./transport";
import { BackendError } from "./types/backend";

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  karst_room(size: number): number;
  karst_name(): number;
  karst_open(): number;
  karst_events(): number;
  karst_events_read(): number;
  karst_read(): number;
  karst_ready(): number;
  karst_ask(): number;
  karst_reply(): number;
  karst_reply_size(): number;
  karst_reply_status(): number;
}

/** Bytes as they come: a file that was dropped, or what the page holds. */
export interface TraceBytes {
  readonly name: string;
  readonly size: number;
  stream(): ReadableStream<Uint8Array>;
}

/** Which part of a trace the page is about; texts, as ticks have more digits than a number. */
export interface Part {
  origin?: string;
  begin?: string;
  end?: string;
}

const MOST_MEMORY = 2 ** 32; // of a module
const EVENT_BYTES = 18; // of columns and lanes, half of what a call takes
const STEP_MS = 40; // between two looks at the page

const tooLarge = (name: string) =>
  new BackendError(
    `${name} is too large for the memory that a browser gives to a page. Look at it with: karst view ${name}`,
    507,
  );

const pause = () => new Promise((resolve) => setTimeout(resolve, 0));

export class Engine {
  private broken = false;
  private name = "This trace";

  private constructor(private readonly module: Exports) {}

  /** `packed`: the module as the page carries it. */
  static async open(packed: string): Promise<Engine> {
    const made: { module?: Exports } = {}; // its imports look at its memory
    const { instance } = await WebAssembly.instantiate(
      await unpack(packed, true),
      engineImports(() => made.module!.memory),
    );
    const module = instance.exports as unknown as Exports;
    made.module = module;
    module._initialize();
    return new Engine(module);
  }

  /** Takes a trace in; `onProgress` hears of the share that is done. Others may work in between. */
  async read(file: TraceBytes, onProgress: (done: number, total: number) => void): Promise<void> {
    this.name = file.name;
    if (file.size >= MOST_MEMORY) throw tooLarge(file.name);
    this.write(new TextEncoder().encode(file.name));
    this.run(() => this.module.karst_name());
    const at = address(this.run(() => this.module.karst_room(file.size)));
    let got = 0;
    const reader = file.stream().getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (got + part.value.length > file.size) break; // it grew
      new Uint8Array(this.module.memory.buffer).set(part.value, at + got);
      got += part.value.length;
    }
    if (got !== file.size) throw new BackendError(`${file.name} changed while it was read.`);
    if (this.run(() => this.module.karst_open()) === 0) throw this.complaint();
    const total = this.run(() => this.module.karst_events());
    if (file.size + total * EVENT_BYTES > MOST_MEMORY) throw tooLarge(file.name);
    let looked = 0;
    do {
      if (this.module.karst_reply_size() !== 0) throw this.complaint();
      if (performance.now() - looked > STEP_MS) {
        onProgress(this.module.karst_events_read(), total);
        await pause();
        looked = performance.now();
      }
    } while (this.run(() => this.module.karst_read()) === 0);
  }

  /** All traces are there. */
  ready(part: Part = {}): void {
    this.write(texts([part.origin ?? "", part.begin ?? "", part.end ?? ""]));
    if (this.run(() => this.module.karst_ready()) === 0) throw this.complaint();
  }

  /** The answer's bytes, which are the caller's. */
  ask(path: string, parameters: Parameters): ArrayBuffer {
    const words = [path];
    for (const [name, value] of Object.entries(parameters)) if (value !== undefined) words.push(name, String(value));
    this.write(texts(words));
    if (this.run(() => this.module.karst_ask()) === 0) throw this.complaint();
    return this.reply();
  }

  private reply(): ArrayBuffer {
    const at = address(this.module.karst_reply());
    return this.module.memory.buffer.slice(at, at + this.module.karst_reply_size());
  }

  private complaint(): BackendError {
    const status = this.module.karst_reply_status();
    const answer = JSON.parse(new TextDecoder().decode(this.reply())) as Json;
    return new BackendError(String(answer.error), status);
  }

  private write(bytes: Uint8Array): void {
    const at = address(this.run(() => this.module.karst_room(bytes.length)));
    new Uint8Array(this.module.memory.buffer).set(bytes, at);
  }

  /** A module that ended has no sound memory left. It ends when memory is out. */
  private run<T>(work: () => T): T {
    if (!this.broken) {
      try {
        return work();
      } catch {
        this.broken = true;
      }
    }
    throw tooLarge(this.name);
  }
}

const texts = (words: readonly string[]) =>
  new TextEncoder().encode(words.map((word) => `${word.replaceAll("\0", "")}\0`).join(""));

/** Trace `number` of an engine that is ready. */
export class EngineTransport implements Transport {
  readonly kind = "embedded";

  constructor(
    private readonly engine: Engine,
    private readonly number: number,
  ) {}

  private ask(path: string, parameters: Parameters): ArrayBuffer {
    return this.engine.ask(path, { ...parameters, trace: this.number === 0 ? undefined : this.number });
  }

  async json(path: string, parameters: Parameters): Promise<Json> {
    return JSON.parse(new TextDecoder().decode(this.ask(path, parameters))) as Json;
  }

  async bytes(path: string, parameters: Parameters): Promise<ArrayBuffer> {
    return this.ask(path, parameters);
  }

  async tiles(parameters: Parameters): Promise<RawTiles> {
    return decodeTiles(this.ask("tiles", parameters));
  }
}
