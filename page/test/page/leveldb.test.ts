// LevelDB, as script/demo and another test build it: a program that nobody wrote for this. What its page says is what
// `karst report` says, and the source beside it is the text that was compiled.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { report, Session, SOURCES, until, WORK } from "./browser";
import { record } from "./record";

const session = new Session();
const built = [
  join(WORK, "../leveldb-counts/leveldb-workload"),
  join(SOURCES, "build/demo/leveldb/leveldb-workload"),
].find(existsSync);

test("LevelDB: table, search, flame graph and source", async (context) => {
  if (!built) return context.skip("LevelDB is not built; script/demo does it");
  const { trace } = record("leveldb.karst", ["--memory", "64M"], [built, "--single", "--batches", "100"]);
  const rows = report(trace);
  const tab = await session.open([trace]);
  await tab.settle();
  const shown = await until(
    () =>
      tab.page.$$eval(".grid-body .grid-row", (elements) =>
        elements.map((element) => [
          element.getAttribute("data-function"),
          ...["total", "self", "max"].map((column) =>
            Number(element.querySelector(`[data-column=${column}]`)!.getAttribute("data-ns")),
          ),
        ]),
      ),
    (found) => found.length > 5,
    "the table",
  );
  // Functions may share a name; then one of them has these numbers.
  for (const [name, ...numbers] of shown)
    expect(
      rows.filter((row) => row.name === name).map((row) => [row.total_ns, row.self_ns, row.max_ns ?? 0]),
      String(name),
    ).toContainEqual(numbers);
  const write = rows.find((row) => row.name.startsWith("leveldb::DBImpl::Write("))!;
  await tab.find("^leveldb::DBImpl::Write\\(");
  expect(await tab.page.locator("[data-testid=call-name]").innerText()).toBe(write.name);
  expect(Math.abs((await tab.ns('[data-fact="without tracing"]')) - write.max_ns)).toBeLessThanOrEqual(1);
  const own = await until(
    () => tab.page.locator(".line.own code").allInnerTexts(),
    (lines) => lines.length > 10,
    "its source",
  );
  const lines = readFileSync(write.file, "utf8").split("\n");
  expect(own.slice(0, 5).map((line) => line.trimEnd())).toEqual(
    lines.slice(write.line - 1, write.line + 4).map((line) => line.trimEnd()),
  );
  await tab.press("3");
  const flameSum = () =>
    until(
      async () => Number(await tab.page.locator("[data-testid=flame-sum]").getAttribute("data-total")),
      (n) => n > 0,
      "a flame graph",
    );
  // Where more is taken out of a function than it took, its self time is 0, and no less.
  const selfTimes = (of: typeof rows) => of.reduce((all, row) => all + row.self_ns, 0);
  const main = rows.find((row) => row.name === "main")!;
  const sum = await flameSum();
  expect(sum).toBeGreaterThanOrEqual(main.total_ns);
  expect(sum).toBeLessThanOrEqual(selfTimes(rows) + rows.length);
  await tab.page.locator("[data-testid=times]").click();
  const recorded = await until(flameSum, (n) => n !== sum, "times as recorded");
  expect(Math.abs(recorded - selfTimes(report(trace, "--raw")))).toBeLessThanOrEqual(rows.length);
  expect(tab.errors).toEqual([]);
  await tab.close();
});
