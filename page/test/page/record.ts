// Traces that tests record themselves: what is missing in one is made by how it is recorded.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { BIN, KARST, karst, SOURCES, WORK } from "./browser";

/** Builds a program of test/e2e for tracing. */
export function build(source: string, output: string): string {
  const program = join(WORK, output);
  const [compiler, standard] = source.endsWith(".c") ? ["karst-gcc", "-std=gnu17"] : ["karst-g++", "-std=c++20"];
  const flags = [standard, "-O2", "-g", "-pthread", `-I${join(SOURCES, "include")}`];
  execFileSync(join(BIN, compiler), [...flags, join(SOURCES, "test/e2e", source), "-o", program], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  return program;
}

/** A trace of a program that needs no attendance; with what karst said of it. */
export function record(name: string, options: string[], command: string[]): { trace: string; said: string } {
  const trace = join(WORK, name);
  // A program that counts its calls for gcov leaves the counts here.
  const env = { ...process.env, GCOV_PREFIX: join(WORK, "gcov") };
  const run = spawnSync(KARST, ["run", "-o", trace, ...options, ...command], {
    encoding: "utf8",
    input: "\n",
    env,
    cwd: WORK,
  });
  if (run.status !== 0) throw new Error(`karst run of ${command.join(" ")} ended with ${run.status}: ${run.stderr}`);
  return { trace, said: run.stderr };
}

/**
 * Runs a program that serves once for each line: at the start and after each of `between`, which are karst's
 * parameters before the process's number.
 */
export async function recordInTurns(
  name: string,
  program: string,
  between: readonly (readonly string[])[],
): Promise<string> {
  const trace = join(WORK, name);
  const run = spawn(KARST, ["run", "-o", trace, program], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(run, "exit");
  const lines = createInterface({ input: run.stdout })[Symbol.asyncIterator]();
  const pid = String((await lines.next()).value);
  const serve = async () => {
    run.stdin.write("\n");
    const { value } = await lines.next();
    if (value !== "served") throw new Error(`${program} said ${value}`);
  };
  await serve();
  for (const parameters of between) {
    karst(...parameters, pid);
    await serve();
  }
  run.stdin.end();
  const [status] = await ended;
  if (status !== 0) throw new Error(`karst run of ${program} ended with ${status}`);
  return trace;
}
