// A generated trace of five million calls over 64 threads: the same numbers as the commands', every call within reach, and
// a page that stays small.
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { karst, report, Session, until, WORK } from "./browser";

const LARGE = join(WORK, "large.karst");
const session = new Session();

describe("five million calls", () => {
  test("their table is the report's, the longest call is where it says, and the page stays small", async () => {
    const rows = report(LARGE);
    const facts = JSON.parse(karst("info", LARGE, "--format", "json"));
    expect(facts.calls).toBe(5_000_000);
    const tab = await session.open([LARGE]);
    await tab.settle();
    await tab.press("2");
    await until(
      () => tab.page.locator(".grid-body .grid-row").count(),
      (n) => n >= Math.min(rows.length, 5),
      "the table",
    );
    const shown = await tab.page.$$eval(".grid-body .grid-row", (elements) =>
      elements.map((element) => [
        element.getAttribute("data-function"),
        ...["total", "self", "p50", "p99", "max"].map((column) =>
          Number(element.querySelector(`[data-column=${column}]`)!.getAttribute("data-ns")),
        ),
      ]),
    );
    for (const [name, ...numbers] of shown) {
      const truth = rows.find((row) => row.name === name)!;
      expect(numbers, String(name)).toEqual([truth.total_ns, truth.self_ns, truth.p50_ns, truth.p99_ns, truth.max_ns]);
    }
    const most = rows.reduce((a, b) => (b.calls > a.calls ? b : a));
    await tab.press("/");
    // At once: a pattern that is typed has been a wrong one meanwhile.
    await tab.page.keyboard.insertText(`^${most.name.replace(/[^\w]/g, "\\$&")}$`);
    await until(
      () => tab.page.locator("[data-testid=found-sum]").innerText(),
      (text) => text.endsWith(`${most.calls.toLocaleString("en-US")} calls`),
      "the count",
    );
    await tab.press("Enter");
    await until(
      () => tab.page.locator("[data-testid=call-name]").count(),
      (n) => n === 1,
      "a selected call",
    );
    expect(Math.round(await tab.ns("[data-fact=duration]"))).toBe(most.max_ns);
    // In and out again, with every tile that it takes.
    await tab.press("f");
    await tab.settle();
    for (let i = 0; i < 12; ++i) await tab.press("s");
    await tab.settle();
    await tab.press("0");
    await tab.settle();
    const devtools = await tab.page.context().newCDPSession(tab.page);
    await devtools.send("HeapProfiler.collectGarbage");
    const { usedSize, backingStorageSize = 0 } = (await devtools.send("Runtime.getHeapUsage")) as {
      usedSize: number;
      backingStorageSize?: number;
    };
    expect(usedSize + backingStorageSize).toBeLessThan(300e6);
    expect(tab.errors).toEqual([]);
    await tab.close();
  });
});
