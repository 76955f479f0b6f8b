// SQL on the page: what `karst query` and `karst check` say of the same trace; a row leads to its call.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { BIN, karst, Session, TRACE, Tab, until, WORK } from "./browser";

const session = new Session();
const there = existsSync(join(BIN, "../lib/karst-sql/libduckdb.so"));

/** Asks, and waits until it is answered. */
async function ask(tab: Tab, sql: string): Promise<void> {
  await tab.page.fill("[data-testid=sql]", sql);
  await tab.page.press("[data-testid=sql]", "Control+Enter");
  await until(
    () => tab.page.locator("[data-testid=sql-sum]").innerText(),
    (said) => !said.includes("Asking"),
    "an answer",
  );
}

describe.skipIf(!there)("a query", () => {
  let tab: Tab;
  beforeAll(async () => {
    tab = await session.open([TRACE], "#tab=query");
    await tab.settle();
  });

  test("is answered as by the command", async () => {
    const sql = "SELECT function, count(*) AS calls FROM calls GROUP BY function ORDER BY calls DESC, function";
    const said = JSON.parse(karst("query", TRACE, sql, "--format", "json")) as { function: string; calls: number }[];
    await ask(tab, sql);
    const rows = tab.page.locator("[data-testid=sql-row]");
    const cells = await rows.evaluateAll((all) => all.map((row) => [...row.children].map((td) => td.textContent)));
    expect(cells.length).toBe(said.length);
    expect(cells.map((row) => Number(row[1]))).toEqual(said.map((row) => row.calls));
    expect(await tab.page.locator("[data-testid=sql-sum]").innerText()).toContain(`${said.length} row`);
  });

  test("leads from a row to its call", async () => {
    await ask(
      tab,
      "SELECT call, function, begin_ns, duration_ns FROM calls ORDER BY duration_ns DESC LIMIT 3 OFFSET 1",
    );
    const row = tab.page.locator("[data-testid=sql-row]").first();
    const [call] = await row.locator("td").allInnerTexts();
    await row.click();
    const selected = await until(
      () => tab.page.evaluate(() => /sel=(\d+)\.(\d+)\.(\d+)/.exec(location.hash)?.slice(1).map(Number)),
      (now) => now !== undefined,
      "a selected call",
    );
    const address = (await session.viewer(TRACE)).address;
    const info = (await (
      await fetch(`${address}api/call?thread=${selected![1]}&index=${selected![2]}&raw=1`)
    ).json()) as { begin: number };
    expect(Math.abs(Number(/@(\d+)ns/.exec(call!)![1]) - info.begin)).toBeLessThanOrEqual(1);
    expect(await tab.page.evaluate(() => location.hash)).toContain("tab=query");
  });

  test("has a plot, and what was asked before comes back", async () => {
    await tab.page.getByRole("button", { name: "Plot" }).click();
    expect(await tab.page.getByTestId("sql-plot").getAttribute("data-points")).toBe("3");
    await tab.page.getByRole("button", { name: "Plot" }).click();
    await tab.page.focus("[data-testid=sql]");
    await tab.page.press("[data-testid=sql]", "Control+Home");
    await tab.page.press("[data-testid=sql]", "ArrowUp");
    await tab.page.press("[data-testid=sql]", "Control+Home");
    await tab.page.press("[data-testid=sql]", "ArrowUp");
    expect(await tab.page.inputValue("[data-testid=sql]")).toContain("count(*)");
  });

  test("of too many rows shows the first, and says how many more there are", async () => {
    await ask(tab, "SELECT * FROM range(6000)");
    expect(await tab.page.locator("[data-testid=sql-sum]").innerText()).toContain("the first 5,000 rows, 1,000 more");
    expect(await tab.page.locator("[data-testid=sql-row]").count()).toBeLessThan(200);
  });

  test("that is wrong is told with its place", async () => {
    await ask(tab, "SELECT functoin FROM calls");
    const said = await tab.page.locator("[data-testid=sql-error]").innerText();
    expect(said).toContain('"function"');
    expect(said).toContain("LINE 1");
    tab.errors.length = 0; // the browser tells of the status 400
  });

  test("reads no file", async () => {
    await ask(tab, "SELECT * FROM read_csv('/etc/passwd')");
    expect(await tab.page.locator("[data-testid=sql-error]").innerText()).toContain("disabled");
    tab.errors.length = 0;
  });

  test("without end is stopped", async () => {
    await tab.page.fill(
      "[data-testid=sql]",
      "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT n FROM r",
    );
    await tab.page.press("[data-testid=sql]", "Control+Enter");
    await tab.page.getByRole("button", { name: "Stop" }).click();
    await until(
      () => tab.page.locator("[data-testid=sql-error]").innerText(),
      (said) => said.includes("Stopped"),
      "its end",
    );
    await until(
      async () => {
        await ask(tab, "SELECT 42 AS answer");
        return (await tab.page.locator("[data-testid=sql-row]").allInnerTexts()).join();
      },
      (rows) => rows.includes("42"),
      "the next answer",
    );
    tab.errors.length = 0;
    await tab.close();
  });
});

test.skipIf(!there)("findings are the command's", async () => {
  const { check_outcomes: outcomes, check_findings: findings } = JSON.parse(karst("check", TRACE, "--json")) as {
    check_outcomes: { detector: string; outcome: string }[];
    check_findings: { title: string }[];
  };
  const tab = await session.open([TRACE], "#tab=check");
  await tab.settle();
  await tab.page.getByRole("button", { name: "Look for known trouble" }).click();
  await until(
    () => tab.page.locator("[data-testid=check-sum]").innerText(),
    (said) => said.includes(`found by ${outcomes.length} detectors`),
    "what was found",
  );
  expect(await tab.page.locator("[data-testid=check-finding] b").allInnerTexts()).toEqual(
    findings.map(({ title }) => title),
  );
  const said = await tab.page.locator(".check-panel").innerText();
  for (const { detector } of outcomes) expect(said).toContain(detector);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a page without a server names the command", async () => {
  const page = join(WORK, "asked.html");
  karst("export", TRACE, "--to", "html", "-o", page);
  for (const [tabName, command] of [
    ["query", "karst query"],
    ["check", "karst check"],
  ]) {
    const tab = await Tab.open(session.browser, `file://${page}#tab=${tabName}`, { offline: true });
    await until(
      () => tab.page.locator("#panel").innerText(),
      (said) => said.includes("without a server") && said.includes(command!),
      "the words",
    );
    await tab.close();
  }
});
