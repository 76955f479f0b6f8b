// Asks the server that the page came from. Addresses are relative to the page, whose own address
// holds the token.
import { byTrack, decodeMinimap } from "./decode";
import {
  alignFacts,
  callFacts,
  flameFacts,
  histogramFacts,
  occurrenceFacts,
  sourceFacts,
  stateLine,
  tableFacts,
  traceFacts,
  type Json,
} from "./facts";
import { jobsAre, startJob } from "./jobs";
import type { WorkerAnswer } from "./tile_worker";
import {
  BackendError,
  type Alignment,
  type AlignSide,
  type Backend,
  type CallInfo,
  type CallRef,
  type Flame,
  type FlameQuery,
  type FunctionTable,
  type Histogram,
  type Occurrences,
  type OccurrenceQuery,
  type Progress,
  type Row,
  type Scope,
  type SourceText,
  type StateLine,
  type TileRequest,
  type TraceInfo,
} from "./types";

type Parameters = Record<string, string | number | undefined>;

function address(path: string, trace: number, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  if (trace !== 0) query.set("trace", String(trace));
  for (const [key, value] of Object.entries(parameters)) if (value !== undefined) query.set(key, String(value));
  const text = query.toString();
  return new URL(`api/${path}${text ? `?${text}` : ""}`, document.baseURI).href;
}

function scopeParameters(scope: Scope, prefix = ""): Parameters {
  const parameters: Parameters = {};
  for (const key of ["begin", "end", "thread", "index", "function"] as const)
    if (scope[key] !== undefined) parameters[prefix + key] = scope[key];
  if (scope.threads) parameters[`${prefix}threads`] = scope.threads.join(",");
  return parameters;
}

const lostServer =
  "The karst process that served this page does not answer. Was it ended? Start `karst view` again and open its new address.";

async function ask(where: string, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(where, signal ? { signal } : {});
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new BackendError(lostServer);
  }
  if (!response.ok) {
    const body: Json = await response.json().catch(() => ({}));
    throw new BackendError(body.error ?? `The server answered ${response.status}.`, response.status);
  }
  return response;
}

/** Tiles by way of the worker. One worker serves all traces. */
class TileFetcher {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, (answer: WorkerAnswer) => void>();
  private next = 1;

  constructor() {
    this.worker = new Worker(new URL("./tile_worker.ts", import.meta.url), { type: "module" });
    this.worker.onmessage = (event: MessageEvent<WorkerAnswer>) => {
      this.waiting.get(event.data.id)?.(event.data);
      this.waiting.delete(event.data.id);
    };
  }

  fetch(where: string, signal?: AbortSignal): Promise<WorkerAnswer> {
    const id = this.next++;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.worker.postMessage({ id, address: where });
      signal?.addEventListener("abort", () => this.worker.postMessage({ id }), { once: true });
    });
  }
}

/** A request that was given up goes on at the server, which cannot see it: it has to be told. */
function stopJob(name: string): void {
  // Whether it could be told makes no difference here.
  fetch(address("stop", 0, { job: name })).catch(() => undefined);
}

let fetcher: TileFetcher | undefined;

/** Starts the worker ahead of its first tile, so that it is there when the trace is. */
export function prepareTiles(): void {
  fetcher ??= new TileFetcher();
}

export class ServerBackend implements Backend {
  readonly kind = "server";
  private canCut = false;
  /** While the trace is being read: resolves when trace() has had the facts of all of it. */
  private whole: Promise<void> | undefined;
  private isWhole = () => {};

  constructor(private readonly number: number) {}

  private async json(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Json> {
    if (this.whole) {
      await this.whole;
      if (signal?.aborted) throw new DOMException("aborted", "AbortError");
    }
    const job = signal && startJob(signal, stopJob);
    return await (await ask(address(path, this.number, { ...parameters, job }), signal)).json();
  }

  async trace(): Promise<TraceInfo> {
    const facts = traceFacts(await (await ask(address("trace", this.number))).json());
    this.canCut = facts.canCut;
    if (facts.reading) this.whole ??= new Promise((resolve) => (this.isWhole = resolve));
    else {
      this.whole = undefined;
      this.isWhole();
    }
    return facts;
  }

  readFirst(threads: readonly number[]): void {
    // It is only a wish.
    fetch(address("first", this.number, { threads: threads.join(",") })).catch(() => undefined);
  }

  async tiles(request: TileRequest, signal?: AbortSignal): Promise<Map<number, Row[]>> {
    prepareTiles();
    const { begin, end, width, levels } = request;
    if (request.function !== undefined) await this.whole;
    const tracks = levels.map(({ track, from, to }) => `${track}:${from}-${to}`).join(",");
    const answer = await fetcher!.fetch(
      address("tiles", this.number, {
        ...{ begin, end, width, tracks, function: request.function },
        // Calls of one function are sought among all; other tiles are there at once.
        job: signal && request.function !== undefined ? startJob(signal, stopJob) : undefined,
      }),
      signal,
    );
    if (answer.status === -1) throw new DOMException("aborted", "AbortError");
    if (!answer.tiles) throw new BackendError(answer.status ? answer.error! : lostServer, answer.status);
    return byTrack(
      answer.tiles,
      levels.map((l) => l.track),
    );
  }

  async minimap(width: number): Promise<Uint8Array[]> {
    await this.whole;
    return decodeMinimap(await (await ask(address("minimap", this.number, { width }))).arrayBuffer());
  }

  async call(at: CallRef): Promise<CallInfo> {
    return callFacts(await this.json("call", { ...at }));
  }

  async occurrences({ at, ...query }: OccurrenceQuery, signal?: AbortSignal): Promise<Occurrences> {
    return occurrenceFacts(await this.json("occurrences", { ...query, ...at }, signal));
  }

  async histogram(func: number, signal?: AbortSignal): Promise<Histogram> {
    return histogramFacts(await this.json("histogram", { function: func }, signal));
  }

  async functions(scope: Scope, signal?: AbortSignal): Promise<FunctionTable> {
    return tableFacts(await this.json("functions", scopeParameters(scope), signal));
  }

  async flame(scope: Scope, query: FlameQuery, signal?: AbortSignal): Promise<Flame> {
    const parameters: Parameters = {
      ...scopeParameters(scope),
      inverted: query.inverted ? 1 : undefined,
      path: query.path?.length ? query.path.join(",") : undefined,
    };
    if (query.b) Object.assign(parameters, scopeParameters(query.b, "b."), { "b.trace": query.b.trace ?? 0 });
    return flameFacts(await this.json("flame", parameters, signal));
  }

  async align(a: AlignSide, b: AlignSide, signal?: AbortSignal): Promise<Alignment> {
    const parameters = {
      thread: a.thread,
      index: a.index,
      "b.trace": b.trace,
      "b.thread": b.thread,
      "b.index": b.index,
    };
    return alignFacts(await this.json("align", parameters, signal));
  }

  async search(pattern: string): Promise<{ functions: number[]; calls: number }> {
    const json = await this.json("search", { q: pattern });
    return { functions: json.functions ?? [], calls: json.calls ?? 0 };
  }

  async state(thread: number, index: number): Promise<StateLine> {
    return stateLine(await this.json("state", { thread, index }));
  }

  async source(func: number): Promise<SourceText> {
    return sourceFacts(await this.json("source", { function: func }));
  }

  cutAddress(begin: number, end: number): string | undefined {
    return this.canCut ? address("cut", this.number, { begin, end }) : undefined;
  }
}

/** How far the server is; fails with what opening the traces failed with. `wait`: when there is something to say, or after some seconds. */
async function progress(wait?: "picture" | "whole"): Promise<Progress> {
  const now: Progress = await (await ask(address("progress", 0, { wait: wait === "whole" ? 1 : wait }))).json();
  if (now.phase === "failed") throw new BackendError(now.error);
  return now;
}

const LEAST_PAUSE = 150; // ms

/**
 * Calls `show` when there is something to be seen of the trace, whenever there is more, and once more when it is ready to be
 * asked about; returns then.
 */
export async function whileReading(show: () => Promise<void>): Promise<void> {
  let now = await progress("picture");
  while (now.phase !== "ready" && now.parts === 0) now = await progress("picture");
  let ready = now.phase === "ready";
  const end = ready
    ? Promise.resolve()
    : (async () => {
        while (!ready) ready = (await progress("whole")).phase === "ready";
      })();
  end.catch(() => undefined); // whoever waits for it is told
  for (let shown = 0; !ready;) {
    const begin = performance.now();
    if (now.parts !== shown) {
      shown = now.parts;
      await show().catch((error: Error) => {
        // Nothing is shown at this moment; what comes of the trace is told in the end.
        if (!(error instanceof BackendError) || error.status !== 503) throw error;
      });
    }
    // The facts of a large trace take their time.
    const pause = Math.max(LEAST_PAUSE, 3 * (performance.now() - begin));
    await Promise.race([end, new Promise((resolve) => setTimeout(resolve, pause))]);
    if (!ready) now = await progress();
  }
  await end;
  await show();
}

/** Tells the server that the page is there, and hears about its progress. */
export function stayAlive(onProgress: (progress: Progress) => void, onLost: () => void, onBack: () => void): void {
  const events = new EventSource(address("alive", 0));
  events.addEventListener("progress", (event) => {
    try {
      onProgress(JSON.parse((event as MessageEvent<string>).data));
    } catch {
      // Not for us.
    }
  });
  events.addEventListener("jobs", (event) => {
    try {
      jobsAre(JSON.parse((event as MessageEvent<string>).data));
    } catch {
      // Not for us.
    }
  });
  events.onerror = onLost;
  events.onopen = onBack;
}
