// The engine that a page without a server carries: it answers in the server's very words, and takes files of any kind.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Engine, EngineTransport, type Part } from "../../src/backend/engine";
import { Questions } from "../../src/backend/questions";
import { BackendError } from "../../src/backend/types/backend";
import { engine, random } from "../sample";

interface Asked {
  file: string;
  part: Part;
  path: string;
  parameters: Record<string, string>;
  status: number;
  answer: string;
}

const answers = join(process.env.KARST_BIN ?? "../build/bin", "karst-answers");
let directory = "";
let asked: Asked[] = [];

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "karst-engine-"));
  execFileSync(answers, [directory]);
  asked = JSON.parse(readFileSync(join(directory, "questions.json"), "utf8"));
});
afterAll(() => rmSync(directory, { recursive: true }));

const fileOf = (name: string) => new File([readFileSync(join(directory, name))], name);

async function open(name: string, part: Part = {}): Promise<Engine> {
  const opened = await Engine.open(engine());
  await opened.read(fileOf(name), () => undefined);
  opened.ready(part);
  return opened;
}

test("answers are the server's, byte for byte", async () => {
  const engines = new Map<string, Engine>();
  const statuses = new Set<number>();
  for (const { file, part, path, parameters, status, answer } of asked) {
    if (!engines.has(file)) engines.set(file, await open(file, part));
    const said = Buffer.from(answer, "hex");
    statuses.add(status);
    const about = `${file} ${path} ${JSON.stringify(parameters)}`;
    try {
      const got = Buffer.from(engines.get(file)!.ask(path, parameters));
      expect(status, about).toBe(200);
      expect(got.equals(said), `${about}\n${got.toString().slice(0, 500)}\n${said.toString().slice(0, 500)}`).toBe(
        true,
      );
    } catch (error) {
      if (!(error instanceof BackendError)) throw error;
      expect(error.status, about).toBe(status);
      // What is wrong with a pattern is said by another library.
      if (path !== "search")
        expect(error.message, about).toBe((JSON.parse(said.toString()) as { error: string }).error);
    }
  }
  expect(engines.size).toBeGreaterThan(30);
  expect(asked.length).toBeGreaterThan(4000);
  expect(statuses).toContain(400);
  expect(statuses).toContain(404);
}, 120_000);

describe("the page's questions", () => {
  test("go to the engine as they go to the server", async () => {
    const backend = new Questions(new EngineTransport(await open("0.karst"), 0));
    const info = await backend.trace();
    const table = await backend.functions({});
    expect(table.calls).toBe(info.calls);
    const levels = info.tracks.map((track) => ({ track: track.id, from: 0, to: 63 }));
    const tiles = await backend.tiles({ begin: 0, end: info.span, width: 100, levels });
    expect([...tiles.values()].every((rows) => rows.length > 0)).toBe(true);
    expect((await backend.minimap(50)).length).toBe(info.threads.length);
    const busiest = table.rows.reduce((a, b) => (a.calls > b.calls ? a : b));
    const { count } = await backend.occurrences({ function: busiest.function, order: "time", direction: "next" });
    expect(count).toBe(busiest.calls);
    expect((await backend.search("^f")).functions.length).toBe(info.functions.length);
    const named = (text: string) => info.functions.flatMap((f, i) => (f.name.includes(text) ? [i] : []));
    for (const text of ["(", "?"])
      // no regular expressions
      expect((await backend.search(text)).functions.sort((a, b) => a - b)).toEqual(named(text));
    expect(backend.cutAddress(0, 1)).toBeUndefined();
  });

  test("two traces are compared", async () => {
    const opened = await Engine.open(engine());
    for (const name of ["0.karst", "2.karst"]) await opened.read(fileOf(name), () => undefined);
    opened.ready();
    const [a, b] = [0, 1].map((number) => new Questions(new EngineTransport(opened, number)));
    expect([(await a!.trace()).name, (await b!.trace()).name]).toEqual(["0.karst", "2.karst"]);
    for (const raw of [false, true]) {
      const flame = await a!.flame({ raw }, { b: { trace: 1 } });
      expect(flame.total).toBe((await a!.functions({ raw, beside: 1 })).busy);
      expect(flame.b!.total).toBe((await b!.functions({ raw, beside: 0 })).busy);
    }
  });
});

describe("files of any kind", () => {
  test("those for which the engine's memory is above 2 GiB, where addresses look negative", async () => {
    const opened = await Engine.open(engine());
    const { memory } = (opened as unknown as { module: { memory: WebAssembly.Memory } }).module;
    memory.grow(2 ** 31 / 65536); // what the engine gets from now on lies behind it
    const bytes = readFileSync(join(directory, "0.karst"));
    const padded = Buffer.concat([bytes, Buffer.alloc(2 ** 22)]); // no room for it was left below
    await opened.read(new File([padded], "padded.karst"), () => undefined);
    opened.ready();
    const info = await new Questions(new EngineTransport(opened, 0)).trace();
    expect(info.calls).toBe((await new Questions(new EngineTransport(await open("0.karst"), 0)).trace()).calls);
  });

  test("damaged ones are opened as far as they go, or refused", async () => {
    const next = random(3);
    const whole = readFileSync(join(directory, "0.karst"));
    let taken = 0;
    for (let round = 0; round < 60; ++round) {
      const bytes = Buffer.from(whole.subarray(0, round % 3 === 0 ? Math.floor(next() * whole.length) : whole.length));
      for (let n = 0; n < 8 && bytes.length > 0; ++n)
        bytes[Math.floor(next() * (n < 2 ? Math.min(64, bytes.length) : bytes.length))] = Math.floor(next() * 256);
      try {
        const opened = await Engine.open(engine());
        await opened.read(new File([bytes], "damaged.karst"), () => undefined);
        opened.ready();
        for (const path of ["trace", "functions", "flame", "minimap"]) opened.ask(path, {});
        ++taken;
      } catch (error) {
        expect(error).toBeInstanceOf(BackendError);
        expect((error as Error).message).not.toMatch(/too large/); // which is what is said when the module broke
      }
    }
    expect(taken).toBeGreaterThan(20);
  }, 120_000);

  test("what is no trace, nothing at all, and what is too large say so", async () => {
    const opened = await Engine.open(engine());
    await expect(opened.read(new File(["nonsense"], "x.txt"), () => undefined)).rejects.toThrow(/not a Karst trace/);
    await expect(opened.read(new File([], "empty.karst"), () => undefined)).rejects.toThrow(/empty.karst/);
    const large = { name: "large.karst", size: 2 ** 33, stream: () => new ReadableStream<Uint8Array>() };
    await expect(opened.read(large, () => undefined)).rejects.toThrow(/karst view large.karst/);
  });
});
