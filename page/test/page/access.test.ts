// The rules of axe-core for accessible pages (WCAG 2.1 A and AA: roles, names, contrast and more), on every panel, light
// and dark, and at 200% zoom.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { karst, Session, SWITCHING, Tab, TRACE, until, WORK } from "./browser";
import { build, record } from "./record";

const session = new Session();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  help: string;
  nodes: { html: string; failureSummary: string }[];
}

/** What a screen reader jumps to. A dialog hides what is behind it. */
async function oneMainAndTitle({ page }: Tab): Promise<void> {
  const options = { includeHidden: true };
  expect(await page.getByRole("main", options).count(), "main").toBe(1);
  expect(await page.getByRole("heading", { ...options, level: 1 }).count(), "h1").toBe(1);
}

/** What is wrong, in words; empty: nothing that can be checked. */
async function violations(tab: Tab): Promise<string[]> {
  await oneMainAndTitle(tab);
  await tab.page.evaluate(axe);
  const found = await tab.page.evaluate(async () => {
    const { axe } = window as unknown as {
      axe: { run: (where: Document, how: object) => Promise<{ violations: Violation[] }> };
    };
    return (
      await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations"] })
    ).violations;
  });
  return found.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`),
  );
}

describe("accessibility", () => {
  test.each([
    ["light", { colorScheme: "light" as const }],
    ["dark", { colorScheme: "dark" as const }],
    ["200% zoom of 1280x720", { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 }],
  ])("%s: every panel follows the rules", async (_, options) => {
    const tab = await session.open([TRACE], "", options);
    await tab.settle();
    await tab.press("/");
    await tab.page.keyboard.type("shop::serve");
    await until(
      () => tab.page.locator("[role=option]").count(),
      (n) => n > 0,
      "something found",
    );
    expect.soft(await violations(tab), "search").toEqual([]);
    await tab.press("Enter");
    await until(
      () => tab.page.locator(".line.own").count(),
      (n) => n > 0,
      "source",
    );
    expect.soft(await violations(tab), "call").toEqual([]);
    await tab.page.locator("[data-testid=timeline]").focus();
    await tab.press("ContextMenu");
    expect(await tab.page.getByRole("menuitem").count()).toBeGreaterThan(8);
    expect.soft(await violations(tab), "a call's menu").toEqual([]);
    await tab.press("Escape");
    for (const [key, panel, there] of [
      ["2", "functions", ".grid-body .grid-row"],
      ["3", "flame graph", ".flame-panel [role=treeitem]"],
      ["4", "range", "[role=tabpanel]"],
      ["5", "compare", "[role=tabpanel]"],
      ["6", "outliers", "[data-testid=slow]"],
      ["?", "help", "dialog[open]"],
    ] as const) {
      await tab.press(key);
      await until(
        () => tab.page.locator(there).count(),
        (n) => n > 0,
        panel,
      );
      expect.soft(await violations(tab), panel).toEqual([]);
    }
    expect(tab.errors).toEqual([]);
    await tab.close();
  });
  test("a page that opens files, one that reads, one that cannot: each has a main part and a title", async () => {
    const file = join(WORK, "access.html");
    karst("export", "--to", "viewer", "-o", file);
    const tab = await Tab.open(session.browser, `file://${file}`, { offline: true });
    await oneMainAndTitle(tab);
    await tab.page.setInputFiles("input[type=file]", file);
    await tab.page.getByText("This trace cannot be shown").waitFor();
    await oneMainAndTitle(tab);
    await tab.page.evaluate(() => (Blob.prototype.stream = () => new ReadableStream())); // which never ends
    await tab.page.setInputFiles("input[type=file]", TRACE);
    await tab.page.getByText("Opening the trace…").waitFor();
    await oneMainAndTitle(tab);
    await tab.close();
  });
  test.each(["light", "dark"] as const)(
    "%s: the lists of what is missing and of what was kept do too",
    async (colorScheme) => {
      const tab = await session.open([SWITCHING], "", { colorScheme });
      await tab.settle();
      for (const list of ["missing", "kept"]) {
        await tab.page.locator(`[data-testid=${list}]`).focus();
        await tab.press("Enter");
        expect(await tab.page.locator(".popover .note").count()).toBeGreaterThan(0);
        expect.soft(await violations(tab), list).toEqual([]);
        await tab.press("Escape");
        expect(await tab.page.locator(".popover").count()).toBe(0);
      }
      await tab.close();
    },
  );
  test.each(["light", "dark"] as const)(
    "%s: notes, requests, frames and what a search finds do too",
    async (colorScheme) => {
      const { trace } = record("notes.karst", [], [build("viewer_notes.cc", "notes")]);
      const tab = await session.open([trace], "", { colorScheme });
      await tab.settle();
      for (const [key, row] of [
        ["8", "note"],
        ["7", "request"],
        ["9", "slow-frame"],
      ] as const) {
        await tab.press(key);
        const rows = tab.page.locator(`[data-testid=${row}]`);
        await until(
          () => rows.count(),
          (n) => n > 0,
          row,
        );
        await rows.first().click();
        expect.soft(await violations(tab), row).toEqual([]);
      }
      await tab.press("/");
      await tab.page.keyboard.insertText("cache");
      await until(
        () => tab.page.locator("[data-testid=found-note]").count(),
        (n) => n === 8,
        "notes found",
      );
      expect.soft(await violations(tab), "search").toEqual([]);
      await tab.close();
    },
  );
});
