// Asks the server that the page came from. Addresses are relative to the page, whose own address
// holds the token.
import { byThread, decodeMinimap } from "./decode";
import {
  callFacts,
  flameFacts,
  histogramFacts,
  occurrenceFacts,
  sourceFacts,
  tableFacts,
  traceFacts,
  type Json,
} from "./facts";
import type { WorkerAnswer } from "./tile_worker";
import {
  BackendError,
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

let fetcher: TileFetcher | undefined;

export class ServerBackend implements Backend {
  readonly kind = "server";
  private canCut = false;

  constructor(private readonly number: number) {}

  private async json(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Json> {
    return await (await ask(address(path, this.number, parameters), signal)).json();
  }

  async trace(): Promise<TraceInfo> {
    const facts = traceFacts(await this.json("trace", {}));
    this.canCut = facts.canCut;
    return facts;
  }

  async tiles(request: TileRequest, signal?: AbortSignal): Promise<Map<number, Row[]>> {
    fetcher ??= new TileFetcher();
    const { begin, end, width, levels } = request;
    const threads = levels.map(({ thread, from, to }) => `${thread}:${from}-${to}`).join(",");
    const answer = await fetcher.fetch(
      address("tiles", this.number, { begin, end, width, threads, function: request.function }),
      signal,
    );
    if (answer.status === -1) throw new DOMException("aborted", "AbortError");
    if (!answer.tiles) throw new BackendError(answer.status ? answer.error! : lostServer, answer.status);
    return byThread(
      answer.tiles,
      levels.map((l) => l.thread),
    );
  }

  async minimap(width: number): Promise<Uint8Array[]> {
    return decodeMinimap(await (await ask(address("minimap", this.number, { width }))).arrayBuffer());
  }

  async call(at: CallRef): Promise<CallInfo> {
    return callFacts(await this.json("call", { ...at }));
  }

  async occurrences({ at, ...query }: OccurrenceQuery): Promise<Occurrences> {
    return occurrenceFacts(await this.json("occurrences", { ...query, ...at }));
  }

  async histogram(func: number): Promise<Histogram> {
    return histogramFacts(await this.json("histogram", { function: func }));
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

  async search(pattern: string): Promise<{ functions: number[]; calls: number }> {
    const json = await this.json("search", { q: pattern });
    return { functions: json.functions ?? [], calls: json.calls ?? 0 };
  }

  async source(func: number): Promise<SourceText> {
    return sourceFacts(await this.json("source", { function: func }));
  }

  cutAddress(begin: number, end: number): string | undefined {
    return this.canCut ? address("cut", this.number, { begin, end }) : undefined;
  }
}

export async function progress(): Promise<Progress> {
  return await (await ask(address("progress", 0))).json();
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
  events.onerror = onLost;
  events.onopen = onBack;
}
