// SPDX-License-Identifier: MIT
// A page without a server: what it carries, or files that somebody opens in it.
import { unpack } from "./decode";
import { Engine, EngineTransport, type Part } from "./engine";
import type { Json } from "./facts";
import { PROTOCOL_VERSION } from "./protocol";
import { Questions } from "./questions";
import { Recorded } from "./recorded";
import { BackendError, type Backend, type Progress } from "./types/backend";

type Watch = (progress: Progress) => void;

const textOf = (id: string) => document.getElementById(id)?.textContent ?? "";

const tell = (watch: Watch, files: string[], done: number, total: number) =>
  watch({ phase: total > 0 ? "rebuilding" : "opening", done, total, parts: 0, error: "", files, generation: 0 });

/** The trace, or the answers, that an exported page carries. */
export async function openEmbedded(text: string, watch: Watch): Promise<Backend[]> {
  const page = JSON.parse(text) as Json;
  if (page.version !== PROTOCOL_VERSION)
    throw new BackendError("This page's data is of another version than the page.");
  if (page.kind === "aggregated") return [new Questions(await Recorded.open(page))];
  const name = String(page.name);
  const file = new File([await unpack(textOf("karst-trace"), true)], name);
  const engine = await Engine.open(textOf("karst-engine"));
  await engine.read(file, (done, total) => tell(watch, [name], done, total));
  engine.ready((page.part ?? {}) as Part);
  return [new Questions(new EngineTransport(engine, 0))];
}

const MOST_FILES = 2; // to be compared

/** One trace, or two to be compared. */
export async function openFiles(files: readonly File[], watch: Watch): Promise<Backend[]> {
  if (files.length > MOST_FILES)
    throw new BackendError(`This page shows one trace, or compares two: ${files.length} files are too many.`);
  const engine = await Engine.open(textOf("karst-engine"));
  const names = files.map((file) => file.name);
  for (const file of files) {
    tell(watch, names, 0, 0);
    await engine.read(file, (done, total) => tell(watch, names, done, total));
  }
  engine.ready();
  return files.map((_, number) => new Questions(new EngineTransport(engine, number)));
}
