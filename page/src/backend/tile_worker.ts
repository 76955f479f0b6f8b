// SPDX-License-Identifier: MIT
// Fetches and checks tiles off the main thread; the bytes travel to the page without a copy.
import { decodeTiles, type RawTiles } from "./decode";

export interface WorkerRequest {
  id: number;
  address?: string; // absent: abort
}
export interface WorkerAnswer {
  id: number;
  tiles?: RawTiles;
  error?: string;
  status?: number;
}

const running = new Map<number, AbortController>();

async function answer({ id, address }: WorkerRequest): Promise<void> {
  if (address === undefined) {
    running.get(id)?.abort();
    return;
  }
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const response = await fetch(address, { signal: controller.signal });
    if (!response.ok) {
      const body = await response.json().catch(() => ({}));
      postMessage({ id, error: body.error ?? `The server answered ${response.status}.`, status: response.status });
      return;
    }
    const buffer = await response.arrayBuffer();
    const tiles = decodeTiles(buffer);
    postMessage({ id, tiles } satisfies WorkerAnswer, { transfer: [buffer] });
  } catch (error) {
    const aborted = controller.signal.aborted;
    postMessage({
      id,
      error: aborted ? "aborted" : String((error as Error).message ?? error),
      status: aborted ? -1 : 0,
    });
  } finally {
    running.delete(id);
  }
}

addEventListener("message", (event: MessageEvent<WorkerRequest>) => void answer(event.data));
