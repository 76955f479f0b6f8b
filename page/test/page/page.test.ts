import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { report, Session, TRACE, until, type ReportRow, type Tab } from "./browser";

const session = new Session();
let tab: Tab;
const rows = report();
const recorded = report(TRACE, "--raw");
const named = (part: string) => rows.find((row) => row.name.startsWith(part))!;
const serve = rows.find((row) => row.name.startsWith("shop::serve("))!;
const callName = () => tab.page.locator("[data-testid=call-name]").innerText();
const callNs = () => tab.ns("[data-fact=duration]");

describe("the page of a real trace", () => {
  beforeEach(async () => {
    tab = await session.open([TRACE]);
    await tab.settle();
  });
  afterEach(async () => {
    // Whatever a test did, nothing went wrong in the page and nothing left this machine.
    expect(tab.errors).toEqual([]);
    for (const address of tab.asked) expect(address).toMatch(/^(http:\/\/127\.0\.0\.1:|data:|blob:)/);
    await tab.close();
  });

  /** All of the table's rows have the numbers of these. */
  async function tableHas(rows: ReportRow[]): Promise<void> {
    await until(
      () => tab.page.locator(".grid-body .grid-row").count(),
      (n) => n > 5,
      "the table",
    );
    const shown = await tab.page.$$eval(".grid-body .grid-row", (elements) =>
      elements.map((element) => ({
        name: element.getAttribute("data-function"),
        ...Object.fromEntries(
          [...element.querySelectorAll("[data-column]")].map((cell) => [
            cell.getAttribute("data-column"),
            cell.getAttribute("data-ns") ?? cell.textContent,
          ]),
        ),
      })),
    );
    expect(shown.length).toBeGreaterThan(5);
    for (const row of shown as unknown as Record<string, string>[]) {
      const truth = rows.find((r) => r.name === row["name"])!;
      expect(truth, row["name"]).toBeDefined();
      expect([row["total"], row["self"]].map(Number)).toEqual([truth.total_ns, truth.self_ns]);
      expect(Number(row["calls"]!.split(" ")[0]!.replace(/,/g, ""))).toBe(truth.calls);
      if (truth.calls > truth.open_calls)
        expect([row["min"], row["p50"], row["p99"], row["max"]].map(Number)).toEqual([
          truth.min_ns,
          truth.p50_ns,
          truth.p99_ns,
          truth.max_ns,
        ]);
    }
  }

  test("its table has the numbers of karst report, with and without what tracing took", async () => {
    await tableHas(rows);
    const choice = tab.page.locator("[data-testid=times]");
    expect(await choice.innerText()).toMatch(/^without tracing’s \d+ ns a call$/);
    await choice.click();
    expect(recorded.reduce((sum, row) => sum + row.self_ns, 0)).toBeGreaterThan(
      rows.reduce((sum, row) => sum + row.self_ns, 0),
    );
    const most = recorded.reduce((a, b) => (a.total_ns > b.total_ns ? a : b));
    await until(
      () => tab.page.$$eval("[data-column=total]", (cells) => cells.map((cell) => cell.getAttribute("data-ns"))),
      (shown) => shown.includes(String(most.total_ns)),
      "times as recorded",
    );
    await tableHas(recorded);
    expect(await choice.innerText()).toMatch(/^as recorded, /);
    // An address has it.
    await until(
      () => tab.page.evaluate(() => location.hash),
      (hash) => hash.includes("raw=1"),
      "an address that says so",
    );
    await choice.click();
  });

  test("search goes to a function's longest call; longer and shorter, next and previous step through all of them", async () => {
    await tab.find("shop::serve");
    expect(await callName()).toBe(serve.name);
    // The page opens on a call of the same function, so its name says not yet that the longest one is shown.
    const most = recorded.find((row) => row.name === serve.name)!.max_ns;
    const longest = await until(callNs, (ns) => Math.round(ns) === most, "the longest call");
    await tab.press("Shift+N");
    const second = await until(callNs, (ns) => ns !== longest, "the next shorter call");
    expect(second).toBeLessThan(longest);
    await tab.press("Shift+P");
    await until(callNs, (ns) => ns === longest, "the longest call again");
    // In time: from the first, forwards to the last.
    // Calls of two threads may begin within a microsecond.
    const begin = async () => `${await tab.page.locator("[data-fact=begin]").innerText()} ${await callNs()}`;
    const visited = new Set<string>();
    for (let i = 0; i < 3; ++i) {
      const before = await begin();
      visited.add(before);
      await tab.press("n");
      await until(begin, (now) => now !== before, "the next call");
      expect(await callName()).toBe(serve.name);
    }
    expect(visited.size).toBe(3);
    const here = await begin();
    await tab.press("n");
    await until(begin, (now) => now !== here, "the next call");
    await tab.press("p");
    await until(begin, (now) => now === here, "the call before");
  });

  test("search counts; what is no expression is a text", async () => {
    await tab.press("/");
    await tab.page.keyboard.type("^shop::work");
    const sum = () => tab.page.locator("[data-testid=found-sum]").innerText();
    const truth = named("shop::work(").calls.toLocaleString("en-US");
    await until(sum, (text) => text === `1 function, ${truth} calls`, "the count");
    await tab.page.keyboard.type("(");
    await until(sum, (text) => text === "No function’s name matches.", "that there is none");
    await tab.press("Control+a");
    await tab.page.keyboard.type("shop::work(");
    await until(sum, (text) => text === `1 function, ${truth} calls`, "the count of the text");
  });

  test("a call's picture: clicked in the timeline, it is the one that is selected", async () => {
    await tab.find("shop::serve");
    await tab.press("f");
    await tab.settle();
    const before = await callNs();
    await tab.press("Escape", "Escape");
    await until(
      () => tab.page.locator("[data-testid=call-name]").count(),
      (n) => n === 0,
      "no selection",
    );
    // The fitted call takes the middle of the timeline: its row is found by pointing at rows from the top.
    const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
    for (let y = 34; y < box.height; y += 9) {
      await tab.page.mouse.click(box.x + box.width / 2, box.y + y);
      await tab.page.waitForTimeout(30);
      if ((await tab.page.locator("[data-testid=call-name]").count()) === 0) continue;
      if ((await callName()) === serve.name && (await callNs()) === before) return;
    }
    throw new Error("the call was not where it was drawn");
  });

  test("flame graph: self times sum to the report's, top-down and bottom-up", async () => {
    const truth = rows.reduce((sum, row) => sum + row.self_ns, 0);
    await tab.press("3");
    for (const inverted of [false, true]) {
      if (inverted) await tab.page.getByRole("button", { name: "Bottom-up" }).click();
      await tab.page.waitForSelector(`[aria-pressed=${inverted}]:has-text("Bottom-up")`);
      const total = await until(
        async () => Number(await tab.page.locator("[data-testid=flame-sum]").getAttribute("data-total")),
        (n) => n > 0,
        "a total",
      );
      // The report rounds each function's self time to whole ns.
      expect(Math.abs(total - truth)).toBeLessThanOrEqual(rows.length);
    }
    await tab.page.getByRole("button", { name: "Bottom-up" }).click();
    // Bottom-up there are such cells, too, so the graph may still be that one.
    const cell = tab.page.locator(`.flame-cell[data-function="${serve.name}"]`).first();
    await until(
      () => cell.getAttribute("aria-label"),
      (label) => label?.includes(`${serve.calls} calls`) ?? false,
      "the function's cell, top-down",
    );
  });

  test("a long answer can be stopped, and asked for again", async () => {
    // The answer is held on its way to the page, as one that takes long; nothing here depends on how long.
    const held: (() => void)[] = [];
    let hold = true;
    const stopped: string[] = [];
    const job = (address: string) => new URL(address).searchParams.get("job") ?? "";
    let asked = "";
    tab.page.on("request", (request) => request.url().includes("/api/stop") && stopped.push(job(request.url())));
    await tab.page.route("**/api/flame*", async (route) => {
      asked = job(route.request().url());
      if (hold) await new Promise<void>((go) => held.push(go));
      await route.continue().catch(() => undefined); // The page does not want it any more.
    });
    await tab.press("3");
    const stop = tab.page.getByRole("button", { name: "Stop" });
    await until(
      () => stop.count(),
      (n) => n === 1,
      "a button that stops",
    );
    expect(await tab.page.locator("progress").getAttribute("aria-label")).toBe("Adding up calls");
    await stop.click();
    await until(
      () => tab.page.locator(".flame-panel [role=alert]").allInnerTexts(),
      (t) => /^Stopped\./.test(t[0] ?? ""),
      "that it was stopped",
    );
    expect(asked).not.toBe("");
    await until(
      async () => stopped,
      (jobs) => jobs.includes(asked),
      "the server told so",
    );
    expect(await stop.count()).toBe(0);
    // Other questions are answered meanwhile.
    await tab.press("2");
    await until(
      () => tab.page.locator(".grid-body .grid-row").count(),
      (n) => n > 5,
      "the table",
    );
    await tab.press("3");
    hold = false;
    for (const go of held) go();
    const again = tab.page.getByRole("button", { name: "Ask again" });
    if ((await again.count()) === 1) await again.click();
    const total = await until(
      async () => Number(await tab.page.locator("[data-testid=flame-sum]").getAttribute("data-total")),
      (n) => n > 0,
      "a total",
    );
    expect(Math.abs(total - rows.reduce((sum, row) => sum + row.self_ns, 0))).toBeLessThanOrEqual(rows.length);
    await tab.page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("source: the function's own lines are marked, from its first to its closing brace", async () => {
    await tab.find("shop::serve");
    const own = await until(
      () => tab.page.locator(".line.own").allInnerTexts(),
      (lines) => lines.length > 0,
      "source",
    );
    const file = readFileSync(serve.file, "utf8").split("\n");
    const last = file.findIndex((line, i) => i >= serve.line && line === "}");
    expect(own.length).toBe(last - serve.line + 2);
    expect(own[0]).toContain(String(serve.line));
    expect(own[0]).toContain("int serve(const Request& request) {");
    expect(own[own.length - 1]).toContain("}");
  });

  test("highlighting marks all calls of a function, and ends with Escape", async () => {
    await tab.page.locator(`.grid-row[data-function="${serve.name}"]`).click();
    const marked = () => tab.page.locator("[data-testid=highlighted]").allInnerTexts();
    await until(marked, (texts) => texts.length === 1 && texts[0]!.includes(`${serve.calls} calls`), "highlighting");
    await tab.settle();
    await tab.press("Escape");
    await until(marked, (texts) => texts.length === 0, "no highlighting");
  });

  test("its files are under 160 KB, compressed", async () => {
    const files = [...new Set(tab.asked.filter((address) => !address.includes("/api/") && address.startsWith("http")))];
    expect(files.length).toBeGreaterThan(2);
    let bytes = 0;
    for (const address of files) bytes += gzipSync(Buffer.from(await (await fetch(address)).arrayBuffer())).length;
    expect(bytes).toBeLessThan(160_000);
  });

  test("the page may load and run nothing but its own files", async () => {
    const response = await fetch((await session.viewer(TRACE)).address);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    expect(await response.text()).not.toMatch(/<script(?![^>]*src=)[^>]*>|<style/);
  });
});
