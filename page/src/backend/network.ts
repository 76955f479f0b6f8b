// SPDX-License-Identifier: MIT
// The server that the page came from, by HTTP. Addresses are relative to the page, whose own address holds the token.
import type { Json } from "./facts";
import { jobsAre, PAGE, startJob } from "./jobs";
import type { RawTiles } from "./decode";
import type { WorkerAnswer } from "./tile_worker";
import type { Parameters, Transport } from "./transport";
import { BackendError, type Progress } from "./types/backend";

function address(path: string, trace: number, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  if (trace !== 0) query.set("trace", String(trace));
  for (const [key, value] of Object.entries(parameters)) if (value !== undefined) query.set(key, String(value));
  const text = query.toString();
  return new URL(`api/${path}${text ? `?${text}` : ""}`, document.baseURI).href;
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

/** What is asked of trace `number` of the server's. */
export class Network implements Transport {
  readonly kind = "server";

  constructor(private readonly number: number) {}

  async json(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Json> {
    const job = signal && startJob(signal, stopJob);
    return await (await ask(address(path, this.number, { ...parameters, job }), signal)).json();
  }

  async bytes(path: string, parameters: Parameters): Promise<ArrayBuffer> {
    return await (await ask(address(path, this.number, parameters))).arrayBuffer();
  }

  async tiles(parameters: Parameters, signal?: AbortSignal): Promise<RawTiles> {
    prepareTiles();
    // Calls of one function are sought among all; other tiles are there at once.
    const job = signal && parameters.function !== undefined ? startJob(signal, stopJob) : undefined;
    const answer = await fetcher!.fetch(address("tiles", this.number, { ...parameters, job }), signal);
    if (answer.status === -1) throw new DOMException("aborted", "AbortError");
    if (!answer.tiles) throw new BackendError(answer.status ? answer.error! : lostServer, answer.status);
    return answer.tiles;
  }

  wish(path: string, parameters: Parameters): void {
    fetch(address(path, this.number, parameters)).catch(() => undefined);
  }

  address(path: string, parameters: Parameters): string {
    return address(path, this.number, parameters);
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
export function stayAlive(
  onProgress: (progress: Progress) => void,
  onReplaced: () => void,
  onLost: () => void,
  onBack: () => void,
): void {
  const events = new EventSource(address("alive", 0, { page: PAGE }));
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
  events.addEventListener("replaced", onReplaced);
  events.onerror = onLost;
  events.onopen = onBack;
}
