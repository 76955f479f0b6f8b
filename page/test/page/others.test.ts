// Pages of other windows, of two traces, of damaged ones, of none; and what may not be asked.
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EVERYTHING, karst, report, Session, SWITCHING, Tab, TRACE, until, Viewer, WORK } from "./browser";

const session = new Session();
let tab: Tab;
const rows = report();
const serve = rows.find((row) => row.name.startsWith("shop::serve("))!;
const callTook = () => tab.ns('[data-fact="without tracing"]');

describe("other pages", () => {
  test.each([
    ["narrow", { viewport: { width: 800, height: 600 } }],
    ["200% zoom of 1280x720", { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 }],
    ["dark, wide", { viewport: { width: 1920, height: 1080 }, colorScheme: "dark" as const }],
  ])("%s: nothing sticks out, and the timeline has room", async (_, options) => {
    tab = await session.open([TRACE], "", options);
    await tab.settle();
    await tab.find("shop::serve");
    const out = await tab.page.evaluate(() => [
      document.documentElement.scrollWidth - innerWidth,
      document.documentElement.scrollHeight - innerHeight,
    ]);
    expect(Math.max(...out)).toBeLessThanOrEqual(0);
    expect((await tab.page.locator("[data-testid=timeline]").boundingBox())!.height).toBeGreaterThan(80);
    expect(tab.errors).toEqual([]);
    await tab.close();
  });

  test("a wrong token is refused", async () => {
    const viewer = await session.viewer(TRACE);
    const wrong = viewer.address.replace(
      /\/([^/]+)\/?$/,
      (_, token: string) => `/${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}/`,
    );
    expect((await fetch(wrong)).status).toBe(403);
    expect((await fetch(`${wrong}api/trace`)).status).toBe(403);
    expect((await fetch(`${viewer.address}api/trace`, { headers: { origin: "http://evil.example" } })).status).toBe(
      403,
    );
  });

  test("two traces are shown side by side", async () => {
    const both = await Viewer.start(TRACE, TRACE);
    try {
      tab = await Tab.open(session.browser, both.address);
      await tab.settle();
      expect(await tab.page.locator(".head.process .title").allInnerTexts()).toContain("A · shop");
      expect(await tab.page.locator("#tab-compare").getAttribute("aria-selected")).toBe("true");
      const flows = await until(
        () => tab.page.locator("[data-testid=aligned-sum]").allInnerTexts(),
        (t) => t.length === 1,
        "the flows",
      );
      expect(flows[0]).toContain("the same");
      await tab.page.getByRole("radio", { name: "By path" }).click();
      const sum = await until(
        () => tab.page.locator("[data-testid=compare-sum]").allInnerTexts(),
        (t) => t.length === 1,
        "the comparison",
      );
      const [, a, b] = /A (.*) · B (.*)/.exec(sum[0]!)!;
      expect(a).toBe(b);
      expect(tab.errors).toEqual([]);
      await tab.close();
    } finally {
      both.stop();
    }
  });

  test("two traces: the first thing that Compare says is the first that karst diff says", async () => {
    tab = await session.open([TRACE, SWITCHING], "");
    const first = tab.page.locator("[data-testid=finding]").first();
    const words = await first.innerText();
    const lines = karst("diff", "--no-pager", TRACE, SWITCHING).split("\n");
    expect(words.trim()).toBe(lines[1]);
    expect(await tab.page.locator(".findings h3").innerText()).toContain(lines[0]);
    await first.click();
    await tab.page.locator("[data-testid=highlighted]").waitFor();
    expect(tab.errors).toEqual([]);
    await tab.close();
  });

  test("a cut trace is shown as far as it goes, and said to be cut", async () => {
    const cut = join(WORK, "cut.karst");
    const bytes = readFileSync(TRACE);
    writeFileSync(cut, bytes);
    truncateSync(cut, Math.floor(bytes.length * 0.8));
    const damaged = await Viewer.start(cut);
    try {
      tab = await Tab.open(session.browser, damaged.address);
      await tab.settle();
      expect(await tab.page.locator("[data-testid=problems]").count()).toBe(1);
      await tab.page.locator("[data-testid=problems]").click();
      await until(
        () => tab.page.locator(".popover").allInnerTexts(),
        (texts) => /cut|damaged/.test(texts[0] ?? ""),
        "the problems",
      );
      await tab.close();
    } finally {
      damaged.stop();
    }
  });

  test("a script that somebody put into an exported page is not run", async () => {
    const file = join(WORK, "shop-injected.html");
    karst("export", TRACE, "--to", "html", "-o", file);
    const more =
      "<script>window.hacked = 1</script><script type=module>window.hacked = 2</script>" +
      "<svg onload='window.hacked = 3'></svg><a href='javascript:window.hacked = 4' id=hack>x</a>";
    writeFileSync(
      file,
      readFileSync(file, "utf8").replace('<div id="app">', () => `${more}<div id="app">`),
    );
    tab = await Tab.open(session.browser, `file://${file}${EVERYTHING}`, { offline: true });
    await tab.settle();
    await tab.page.$eval("#hack", (e) => (e as HTMLElement).click());
    expect(await tab.page.evaluate(() => (window as { hacked?: number }).hacked)).toBeUndefined();
    expect(tab.errors.filter((error) => error.includes("Content Security Policy")).length).toBeGreaterThanOrEqual(3);
    await tab.close();
  });

  test("an exported page works from its file, with the network off", async () => {
    const file = join(WORK, "shop.html");
    karst("export", TRACE, "--to", "html", "-o", file);
    tab = await Tab.open(session.browser, `file://${file}${EVERYTHING}`, { offline: true });
    await tab.settle();
    for (const address of tab.asked) expect(address).toMatch(/^(file|data|blob):/);
    await until(
      () => tab.page.locator(".grid-body .grid-row").count(),
      (n) => n > 5,
      "the table",
    );
    const self = await tab.page.$$eval(".grid-body .grid-row", (elements) =>
      elements.map(
        (e) =>
          [
            e.getAttribute("data-function"),
            Number(e.querySelector("[data-column=self]")!.getAttribute("data-ns")),
            Number(e.querySelector("[data-column=total]")!.getAttribute("data-ns")),
          ] as const,
      ),
    );
    expect(self.length).toBeGreaterThan(5);
    for (const [name, ns, total] of self) {
      const truth = rows.find((row) => row.name === name)!;
      expect([total, ns]).toEqual([truth.total_ns, truth.self_ns]);
    }
    await tab.find("shop::serve");
    expect(Math.abs((await callTook()) - serve.max_ns)).toBeLessThanOrEqual(1);
    await until(
      () => tab.page.locator(".line.own").count(),
      (n) => n > 2,
      "source",
    );
    expect(tab.errors).toEqual([]);
    await tab.close();
  });
});
