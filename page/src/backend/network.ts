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

const LET_GO = 410;

let onLetGo = () => {};
/** Called when the server has let go what this page shows, as it does when it reads a file again and again. */
export function whenLetGo(callback: () => void): void {
  onLetGo = callback;
}

function isLetGo(status: number | undefined): boolean {
  if (status === LET_GO) onLetGo();
  return status === LET_GO;
}

/** Whether a question failed for that. */
export const wasLetGo = (error: unknown): boolean =>
  (error as Error).name === "AbortError" || (error instanceof BackendError && error.status === LET_GO);

/** What is asked of trace `number` of the server's, as it was in this generation. */
export class Network implements Transport {
  readonly kind = "server";

  constructor(
    private readonly number: number,
    private readonly generation: number,
  ) {}

  private address(path: string, parameters: Parameters): string {
    return address(path, this.number, { ...parameters, generation: this.generation });
  }

  private async ask(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Response> {
    try {
      return await ask(this.address(path, parameters), signal);
    } catch (error) {
      // What was let go is asked for again when the page has what is there now.
      if (error instanceof BackendError && isLetGo(error.status)) throw new DOMException("let go", "AbortError");
      throw error;
    }
  }

  async json(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Json> {
    const job = signal && startJob(signal, stopJob);
    return await (await this.ask(path, { ...parameters, job }, signal)).json();
  }

  async bytes(path: string, parameters: Parameters): Promise<ArrayBuffer> {
    return await (await this.ask(path, parameters)).arrayBuffer();
  }

  async tiles(parameters: Parameters, signal?: AbortSignal): Promise<RawTiles> {
    prepareTiles();
    // Calls of one function are sought among all; other tiles are there at once.
    const job = signal && parameters.function !== undefined ? startJob(signal, stopJob) : undefined;
    const answer = await fetcher!.fetch(this.address("tiles", { ...parameters, job }), signal);
    if (answer.status === -1 || isLetGo(answer.status)) throw new DOMException("aborted", "AbortError");
    if (!answer.tiles) throw new BackendError(answer.status ? answer.error! : lostServer, answer.status);
    return answer.tiles;
  }

  wish(path: string, parameters: Parameters): void {
    fetch(this.address(path, parameters)).catch(() => undefined);
  }

  fileAddress(path: string, parameters: Parameters): string {
    return this.address(path, parameters);
  }
}

/** How far the server is; fails with what opening the traces failed with. `wait`: when there is something to say, or after some seconds. */
async function progress(wait?: "picture" | "whole", generation?: number): Promise<Progress> {
  const parameters = { wait: wait === "whole" ? 1 : wait, generation };
  const now: Progress = await (await ask(address("progress", 0, parameters))).json();
  if (now.phase === "failed") throw new BackendError(now.error);
  return now;
}

const LEAST_PAUSE = 150; // ms

/**
 * Calls `show` when there is something to be seen of the trace, whenever there is more, and once more when it is ready to be
 * asked about; returns then.
 */
export async function whileReading(show: (generation: number) => Promise<void>): Promise<void> {
  let now = await progress("picture");
  const { generation } = now;
  hold(generation);
  while (now.phase !== "ready" && now.parts === 0) now = await progress("picture", generation);
  let ready = now.phase === "ready";
  const end = ready
    ? Promise.resolve()
    : (async () => {
        while (!ready) ready = (await progress("whole", generation)).phase === "ready";
      })();
  end.catch(() => undefined); // whoever waits for it is told
  for (let shown = 0; !ready;) {
    const begin = performance.now();
    if (now.parts !== shown) {
      shown = now.parts;
      await show(generation).catch((error: Error) => {
        // Nothing is shown at this moment; what comes of the trace is told in the end.
        if (!(error instanceof BackendError) || error.status !== 503) throw error;
      });
    }
    // The facts of a large trace take their time.
    const pause = Math.max(LEAST_PAUSE, 3 * (performance.now() - begin));
    await Promise.race([end, new Promise((resolve) => setTimeout(resolve, pause))]);
    if (!ready) now = await progress(undefined, generation);
  }
  await end;
  await show(generation);
}

/** Says which generation this page has, so that the server keeps it and lets others go. */
export function hold(generation: number): void {
  fetch(address("hold", 0, { page: PAGE, generation })).then(
    ({ status }) => void isLetGo(status),
    () => undefined,
  );
}

/** What api/renew says. */
export interface Renewal {
  readonly generation: number;
  /** What has the numbers that it had: all; all but calls; nothing, in the same file or in another one. */
  readonly same: "calls" | "threads" | "file" | "nothing";
  /** Times are counted from so much later, ns. */
  readonly shift: number;
  /** By trace: what came before is not read; null: all is. */
  readonly from: readonly (number | null)[];
  /** The calls asked about: trace, thread and index now; null: not there. */
  readonly calls: readonly (readonly [number, number, number] | null)[];
  /** By trace: threads by the numbers that they had; -1: not there. */
  readonly threads: readonly (readonly number[])[];
}

/** What the file has by now; the server holds that and what this page has. Waits while it is being read. */
export async function renew(
  generation: number,
  calls: readonly string[],
  newest: boolean,
  signal?: AbortSignal,
): Promise<Renewal> {
  const parameters = { page: PAGE, generation, calls: calls.join(",") || undefined, newest: newest ? 1 : undefined };
  for (;;) {
    try {
      return (await (await ask(address("renew", 0, parameters), signal)).json()) as Renewal;
    } catch (error) {
      if (!(error instanceof BackendError) || error.status !== 503) throw error; // 503: it is being read
    }
  }
}

/** Tells the server that the page is there, and hears about its progress. */
export function stayAlive(
  onProgress: (progress: Progress) => void,
  onLost: (why: string) => void,
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
  // Of a trace on another machine: the server here is there, the connection to that one is not.
  events.addEventListener("away", (event) => {
    try {
      const { why, again } = JSON.parse((event as MessageEvent<string>).data) as { why: unknown; again: unknown };
      onLost(`${String(why)}. What is on screen stays${again === true ? "; the connection is tried again." : "."}`);
    } catch {
      // Not for us.
    }
  });
  events.addEventListener("back", onBack);
  events.onerror = () => onLost("");
  events.onopen = onBack;
}
