// The page that opens traces by itself: files are dropped in it, from its own file, with the network off.
import { existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { karst, report, Session, SOURCES, SWITCHING, Tab, TRACE, until, WORK } from "./browser";
import { record } from "./record";

const session = new Session();
const PAGE = join(WORK, "viewer.html");
let tab: Tab;

beforeAll(() => void karst("export", "--to", "viewer", "-o", PAGE));
afterEach(async () => {
  expect(tab.errors).toEqual([]);
  for (const address of tab.asked) expect(address).toMatch(/^(file|data|blob):/);
  await tab.close();
});

const openPage = async (options = {}) => {
  tab = await Tab.open(session.browser, `file://${PAGE}`, { offline: true, ...options });
};

/** As a hand does it: the files are held over the page, then let go. */
async function drop(...files: string[]): Promise<void> {
  const data = await tab.page.evaluateHandle(
    (given) => {
      const transfer = new DataTransfer();
      for (const { name, text } of given)
        transfer.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
      return transfer;
    },
    files.map((file) => ({ name: basename(file), text: readFileSync(file).toString("base64") })),
  );
  for (const kind of ["dragover", "drop"]) await tab.page.dispatchEvent("body", kind, { dataTransfer: data });
}

const words = () => tab.page.locator("body").innerText();
const choose = (file: string) => tab.page.setInputFiles("input[type=file]", file);

/** Rows of the page's table are those of the command. */
async function tableIsThatOf(trace: string): Promise<void> {
  const rows = report(trace);
  const calls = rows.reduce((sum, row) => sum + row.calls, 0).toLocaleString("en-US");
  await until(words, (text) => text.includes(`${calls} calls`), `${calls} calls`);
  await tab.press("2");
  const most = rows.reduce((a, b) => (a.self_ns > b.self_ns ? a : b));
  await until(
    () => tab.page.locator(".grid-body .grid-row").first().innerText(),
    (text) => text.replaceAll(/\s/g, "").includes(most.calls.toLocaleString("en-US")),
    `${most.calls} calls of ${most.name}`,
  );
}

/** The demo's program, as leveldb.test.ts has it. */
function demoTrace(): string | undefined {
  const program = [
    join(WORK, "../leveldb-counts/leveldb-workload"),
    join(SOURCES, "build/demo/leveldb/leveldb-workload"),
  ].find(existsSync);
  return program && record("demo.karst", ["--memory", "16M"], [program, "--single", "--batches", "100"]).trace;
}

describe("a trace that is dropped", () => {
  test("is shown as the commands tell of it", async () => {
    await openPage();
    expect(await words()).toContain("Drop a .karst file here");
    await drop(TRACE);
    await tableIsThatOf(TRACE);
    // Another one takes its place.
    await drop(SWITCHING);
    await tableIsThatOf(SWITCHING);
  });

  test("has its states, its switches and what was kept", async () => {
    await openPage({ colorScheme: "dark" });
    await choose(SWITCHING);
    await tableIsThatOf(SWITCHING);
    const { kept } = JSON.parse(karst("info", SWITCHING, "--format", "json")) as { kept: unknown[] };
    expect(kept.length).toBeGreaterThan(0);
    await until(words, (text) => text.includes("kept"), "what was kept");
    await tab.page.screenshot({ path: join(WORK, "dropped-dark.png") });
  });

  test("is opened on its slowest call, however long it is read", async () => {
    const slow = JSON.parse(karst("slow", TRACE, "--format", "json", "--limit", "1")).slow[0];
    await openPage();
    await tab.page.evaluate(() => {
      // eslint-disable-next-line @typescript-eslint/unbound-method -- called with a context below
      const { stream } = Blob.prototype;
      Blob.prototype.stream = function (this: Blob) {
        const transform = async (part: Uint8Array<ArrayBuffer>, out: TransformStreamDefaultController) => {
          await new Promise((resolve) => setTimeout(resolve, 800));
          out.enqueue(part);
        };
        return stream.call(this).pipeThrough(new TransformStream({ transform }));
      };
    });
    await choose(TRACE);
    const hash = await until(
      () => tab.page.evaluate(() => location.hash),
      (text) => text.includes("sel="),
      "an address",
    );
    const [from = 0, span = 0] = /t=(-?[\d.]+)\+([\d.]+)/.exec(hash)!.slice(1).map(Number);
    expect(from).toBeLessThan(slow.begin_ns);
    expect(from + span).toBeGreaterThan(slow.begin_ns);
    expect(await tab.page.locator("[data-testid=slow].on").count()).toBe(1);
  });

  test("may be the demo's", async (context) => {
    await openPage();
    const trace = demoTrace();
    if (!trace) return context.skip("LevelDB is not built; script/demo does it");
    await choose(trace);
    await tableIsThatOf(trace);
  });

  test("is shown as a link has it that was copied from such a page", async () => {
    await openPage();
    await choose(TRACE);
    const hash = () => tab.page.evaluate(() => location.hash);
    await until(hash, (text) => text.includes("sel="), "an address");
    await tab.press("0", "3");
    await until(hash, (text) => text.includes("tab=flame"), "the flame graph");
    const link = tab.page.url();
    await tab.close();
    tab = await Tab.open(session.browser, link, { offline: true });
    await choose(TRACE);
    await tab.settle();
    await tab.page.waitForTimeout(600);
    expect(tab.page.url()).toBe(link);
    expect(await tab.page.locator("[role=tab][aria-selected=true]").innerText()).toBe("Flame graph");
  });

  test("may be two, which are compared", async () => {
    await openPage();
    await drop(TRACE, SWITCHING);
    await until(words, (text) => text.includes(basename(TRACE)) && text.includes(basename(SWITCHING)), "both names");
  });
});

describe("what cannot be shown says so, and the page takes another file", () => {
  test("damaged ones are shown as far as they go", async () => {
    const bytes = readFileSync(TRACE);
    const damaged = join(WORK, "damaged.karst");
    writeFileSync(damaged, bytes.subarray(0, bytes.length * 0.7));
    await openPage();
    await choose(damaged);
    await until(words, (text) => text.includes("Not whole"), "that it is not whole");
    writeFileSync(damaged, "no trace at all");
    await openAgain(damaged, /is not a Karst trace/);
  });

  test("one that is too large names the command", async () => {
    const large = join(WORK, "too_large.karst");
    writeFileSync(large, "");
    truncateSync(large, 2 ** 32); // no block of it is on the disk
    await openPage();
    await choose(large);
    await until(words, (text) => text.includes("karst view too_large.karst"), "karst view");
    await choose(TRACE);
    await tableIsThatOf(TRACE);
  });

  test("three are too many", async () => {
    await openPage();
    await drop(TRACE, TRACE, TRACE);
    await until(words, (text) => text.includes("3 files are too many"), "that three are too many");
  });
});

async function openAgain(file: string, says: RegExp): Promise<void> {
  await drop(file);
  await until(words, (text) => says.test(text), String(says));
}
