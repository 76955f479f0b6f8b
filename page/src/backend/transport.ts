// SPDX-License-Identifier: MIT
// Who answers the questions of docs/viewer-protocol.md: the server (network.ts), the engine that a page carries
// (engine.ts), or answers that were written down when the page was made (recorded.ts).
import type { RawTiles } from "./decode";
import type { Json } from "./facts";

export type Parameters = Record<string, string | number | undefined>;

/** About one trace. `path` is what follows `api/`. All fail with a BackendError, or an AbortError when `signal` was aborted. */
export interface Transport {
  readonly kind: "server" | "embedded";
  /** When there is only one picture: where its pixels begin and how long they are, whatever is asked for. */
  readonly picture?: { readonly begin: number; readonly pixelNs: number };
  json(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Json>;
  bytes(path: string, parameters: Parameters): Promise<ArrayBuffer>;
  tiles(parameters: Parameters, signal?: AbortSignal): Promise<RawTiles>;
  /** Says something to which there is no answer. */
  wish?(path: string, parameters: Parameters): void;
  /** Where the browser gets an answer as a file. */
  fileAddress?(path: string, parameters: Parameters): string;
}
