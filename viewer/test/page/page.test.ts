import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { karst, launch, report, Tab, TRACE, until, Viewer, WORK } from "./browser";

let browser: Browser;
let viewer: Viewer;
let tab: Tab;
const rows = report();
const named = (part: string) => rows.find((row) => row.name.startsWith(part))!;
const serve = named("shop::serve(");

beforeAll(async () => {
  browser = await launch();
  viewer = await Viewer.start(TRACE);
});
afterAll(async () => {
  await browser?.close();
  viewer?.stop();
});

/** Searches by keyboard and takes the first that is found: its longest call gets selected. */
async function find(text: string): Promise<void> {
  await tab.press("/");
  await tab.page.keyboard.type(text);
  await until(() => tab.page.locator("[role=option]").count(), (n) => n > 0, "something found");
  await tab.press("Enter");
  await until(() => tab.page.locator("[data-testid=call-name]").count(), (n) => n === 1, "a selected call");
}
const callName = () => tab.page.locator("[data-testid=call-name]").innerText();
const callNs = () => tab.ns("[data-fact=duration]");

describe("the page of a real trace", () => {
  beforeEach(async () => {
    tab = await Tab.open(browser, viewer.address);
    await tab.settle();
  });
  afterEach(async () => {
    // Whatever a test did, nothing went wrong in the page and nothing left this machine.
    expect(tab.errors).toEqual([]);
    for (const address of tab.asked) expect(address).toMatch(/^(http:\/\/127\.0\.0\.1:|data:|blob:)/);
    await tab.close();
  });

  test("its table has the numbers of karst report", async () => {
    await until(() => tab.page.locator(".grid-body .grid-row").count(), (n) => n > 5, "the table");
    const shown = await tab.page.$$eval(".grid-body .grid-row", (elements) =>
      elements.map((element) => ({
        name: element.getAttribute("data-function"),
        ...Object.fromEntries([...element.querySelectorAll("[data-column]")].map((cell) => [cell.getAttribute("data-column"), cell.getAttribute("data-ns") ?? cell.textContent])),
      })),
    );
    expect(shown.length).toBeGreaterThan(5);
    for (const row of shown as unknown as Record<string, string>[]) {
      const truth = rows.find((r) => r.name === row["name"])!;
      expect(truth, row["name"]!).toBeDefined();
      expect([row["total"], row["self"]].map(Number)).toEqual([truth.total_ns, truth.self_ns]);
      expect(Number(row["calls"]!.split(" ")[0]!.replace(/,/g, ""))).toBe(truth.calls);
      if (truth.calls > truth.open_calls)
        expect([row["min"], row["p50"], row["p99"], row["max"]].map(Number)).toEqual([truth.min_ns, truth.p50_ns, truth.p99_ns, truth.max_ns]);
    }
  });

  test("search goes to a function's longest call; longer and shorter, next and previous step through all of them", async () => {
    await find("shop::serve");
    expect(await callName()).toBe(serve.name);
    const longest = await callNs();
    expect(Math.round(longest)).toBe(serve.max_ns);
    await tab.press("Shift+N");
    const second = await until(callNs, (ns) => ns !== longest, "the next shorter call");
    expect(second).toBeLessThan(longest);
    await tab.press("Shift+P");
    await until(callNs, (ns) => ns === longest, "the longest call again");
    // In time: from the first, forwards to the last.
    const begin = () => tab.page.locator("[data-fact=begin]").innerText();
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

  test("search counts, and says what is wrong with a pattern", async () => {
    await tab.press("/");
    await tab.page.keyboard.type("^shop::work");
    const sum = () => tab.page.locator("[data-testid=found-sum]").innerText();
    const truth = named("shop::work(").calls.toLocaleString("en-US");
    await until(sum, (text) => text === `1 function, ${truth} calls`, "the count");
    await tab.page.keyboard.type("(");
    await until(sum, (text) => /missing|\)/.test(text), "what is wrong");
    tab.errors.length = 0; // The browser logs the server's 400.
  });

  test("a call's picture: clicked in the timeline, it is the one that is selected", async () => {
    await find("shop::serve");
    await tab.press("f");
    await tab.settle();
    const before = await callNs();
    await tab.press("Escape", "Escape");
    await until(() => tab.page.locator("[data-testid=call-name]").count(), (n) => n === 0, "no selection");
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
      const total = await until(async () => Number(await tab.page.locator("[data-testid=flame-sum]").getAttribute("data-total")), (n) => n > 0, "a total");
      // The report rounds each function's self time to whole ns.
      expect(Math.abs(total - truth)).toBeLessThanOrEqual(rows.length);
    }
    await tab.page.getByRole("button", { name: "Bottom-up" }).click();
    await tab.page.waitForSelector('.flame-cell[data-function="main"]');
    const cell = tab.page.locator(`.flame-cell[data-function="${serve.name}"]`).first();
    expect(await cell.getAttribute("aria-label")).toContain(`${serve.calls} calls`);
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
    await until(() => stop.count(), (n) => n === 1, "a button that stops");
    expect(await tab.page.locator("progress").getAttribute("aria-label")).toBe("Adding up calls");
    await stop.click();
    await until(() => tab.page.locator(".flame-panel [role=alert]").allInnerTexts(), (t) => /^Stopped\./.test(t[0] ?? ""), "that it was stopped");
    expect(asked).not.toBe("");
    await until(async () => stopped, (jobs) => jobs.includes(asked), "the server told so");
    expect(await stop.count()).toBe(0);
    // Other questions are answered meanwhile.
    await tab.press("2");
    await until(() => tab.page.locator(".grid-body .grid-row").count(), (n) => n > 5, "the table");
    await tab.press("3");
    hold = false;
    for (const go of held) go();
    const again = tab.page.getByRole("button", { name: "Ask again" });
    if ((await again.count()) === 1) await again.click();
    const total = await until(async () => Number(await tab.page.locator("[data-testid=flame-sum]").getAttribute("data-total")), (n) => n > 0, "a total");
    expect(Math.abs(total - rows.reduce((sum, row) => sum + row.self_ns, 0))).toBeLessThanOrEqual(rows.length);
    await tab.page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("source: the function's own lines are marked, from its first to its closing brace", async () => {
    await find("shop::serve");
    const own = await until(() => tab.page.locator(".line.own").allInnerTexts(), (lines) => lines.length > 0, "source");
    const file = readFileSync(serve.file, "utf8").split("\n");
    const last = file.findIndex((line, i) => i >= serve.line && line === "}");
    expect(own.length).toBe(last - serve.line + 2);
    expect(own[0]).toContain(String(serve.line));
    expect(own[0]).toContain("int serve(const Request& request) {");
    expect(own[own.length - 1]).toContain("}");
  });

  test("keyboard alone: select, walk the tree, fit, zoom, fold, pin, tabs, help", async () => {
    await tab.page.locator("[data-testid=timeline]").focus();
    await tab.press("Enter");
    await until(callName, (name) => name === "main", "main");
    await tab.press("PageDown");
    let last = await until(callName, (name) => name !== "main", "the next track's call");
    // The thread's last call destroys what it was given. On a busy machine it may be what is seen of it.
    for (let i = 0; i < 3 && last.includes("~"); ++i) {
      await tab.press("Shift+ArrowLeft");
      last = await until(callName, (name) => name !== last, "the call before it");
    }
    // std::thread's own functions lie in between; how many, the compiler says.
    for (let i = 0; i < 12 && last !== serve.name; ++i) {
      await tab.press("Shift+ArrowDown");
      last = await until(callName, (name) => name !== last, "its longest callee");
    }
    expect(last).toBe(serve.name);
    await tab.press("f");
    await tab.settle();
    await tab.press("Shift+ArrowUp");
    await until(callName, (name) => name.startsWith("clerk"), "its caller");
    const hash = () => tab.page.evaluate(() => location.hash);
    const span = async () => Number(/t=[-\d.]+\+([\d.]+)/.exec(await hash())?.[1]);
    await until(span, Number.isFinite, "an address");
    await tab.page.waitForTimeout(400);
    const before = await span();
    await tab.press("w", "w");
    const closer = await until(span, (now) => now < before * 0.5, "a closer view");
    await tab.press("0");
    await until(span, (now) => now > closer * 2, "everything");
    await tab.press("k", "i");
    await until(hash, (text) => /fold=0:\d/.test(text) && /pin=0:\d/.test(text), "a folded, pinned track");
    for (const [key, label] of [["2", "Functions"], ["3", "Flame graph"], ["4", "Range"], ["5", "Compare"], ["1", "Call"]] as const) {
      await tab.press(key);
      await until(() => tab.page.locator("[role=tab][aria-selected=true]").innerText(), (text) => text === label, label);
    }
    const there = (selector: string, n: number) => until(() => tab.page.locator(selector).count(), (now) => now === n, `${n} ${selector}`);
    await tab.press("b");
    await there("[role=tabpanel]", 0);
    await tab.press("b", "?");
    await there("dialog[open]", 1);
    await tab.press("Escape");
    await there("dialog[open]", 0);
    // Everything that can be clicked can be reached by Tab, and has a name.
    const unnamed = await tab.page.$$eval("button, a, input, select, [role=tab], [role=treeitem]", (all) =>
      all.filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("title") || e.textContent?.trim() || e.closest("label"))).map((e) => e.outerHTML),
    );
    expect(unnamed).toEqual([]);
    const unreachable = await tab.page.$$eval("button:not([role]):not(:disabled), input, select", (all) => all.filter((e) => (e as HTMLElement).tabIndex < 0).map((e) => e.outerHTML));
    expect(unreachable).toEqual([]);
  });

  test("mouse: the wheel zooms at the pointer, a pinch does too, dragging moves, Shift and the wheel scroll", async () => {
    const view = async () => {
      const [, begin, span] = /t=(-?[\d.]+)\+([\d.]+)/.exec(await tab.page.evaluate(() => location.hash)) ?? [];
      return { begin: Number(begin), span: Number(span), y: Number(/&y=(\d+)/.exec(await tab.page.evaluate(() => location.hash))?.[1] ?? 0) };
    };
    const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
    const at = { x: box.x + box.width / 4, y: box.y + 60 };
    await tab.page.mouse.move(at.x, at.y);
    await tab.page.mouse.wheel(0, -1);
    const before = await until(view, (v) => v.span > 0, "an address");
    await tab.page.mouse.wheel(0, -200);
    const closer = await until(view, (v) => v.span < before.span * 0.9, "a closer view");
    // The moment under the pointer stays.
    expect(Math.abs(closer.begin + closer.span / 4 - (before.begin + before.span / 4)) / before.span).toBeLessThan(0.01);
    await tab.page.keyboard.down("Control");
    await tab.page.mouse.wheel(0, -30);
    await tab.page.keyboard.up("Control");
    const pinched = await until(view, (v) => v.span < closer.span * 0.9, "a pinched view");
    await tab.page.mouse.down();
    await tab.page.mouse.move(at.x + 100, at.y, { steps: 4 });
    await tab.page.mouse.up();
    const moved = await until(view, (v) => v.begin < pinched.begin, "a moved view");
    expect((pinched.begin - moved.begin) / pinched.span).toBeCloseTo(100 / box.width, 2);
    await tab.page.keyboard.down("Shift");
    await tab.page.mouse.wheel(0, 120);
    await tab.page.keyboard.up("Shift");
    await until(view, (v) => v.y > 0, "scrolled tracks");
  });

  test("a reload and a link restore the view, the selection, filters and tab", async () => {
    await find("shop::price");
    await tab.press("f", "3");
    await tab.page.locator("[data-testid=thread-filter]").fill("clerk");
    const written = () => tab.page.evaluate(() => location.hash);
    await until(written, (text) => /sel=0\.\d+\.\d+/.test(text) && text.includes("threads=clerk") && text.includes("tab=flame"), "an address");
    await tab.page.waitForTimeout(500);
    const hash = await written();
    await tab.page.reload();
    await tab.settle();
    await tab.page.waitForTimeout(500);
    await until(() => tab.page.evaluate(() => location.hash), (now) => now === hash, "the same address");
    expect(await tab.page.locator("[role=tab][aria-selected=true]").innerText()).toBe("Flame graph");
    await tab.press("1");
    await until(callName, (name) => name.startsWith("shop::price("), "the selected call");
  });

  test("a range measured by dragging: its length, its calls; saved, it is a trace of its own", async () => {
    await find("shop::serve");
    await tab.press("f");
    await tab.settle();
    const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
    await tab.page.mouse.move(box.x + box.width * 0.3, box.y + 12);
    await tab.page.mouse.down();
    await tab.page.mouse.move(box.x + box.width * 0.6, box.y + 12, { steps: 6 });
    await tab.page.mouse.up();
    const length = await until(() => tab.ns("[data-testid=range-length]"), (ns) => ns > 0, "a length");
    // The call takes 80% of the window, so 30% of that is 3/8 of it.
    expect(length / serve.max_ns).toBeCloseTo(0.375, 1);
    await until(() => tab.page.locator("[data-testid=range-calls]").innerText(), (text) => /^[\d,]+ overlap/.test(text), "calls");
    const [download] = await Promise.all([tab.page.waitForEvent("download"), tab.page.locator("[data-testid=save-range]").click()]);
    const file = join(WORK, "range.karst");
    await download.saveAs(file);
    const facts = JSON.parse(karst("info", file, "--format", "json"));
    expect(facts.calls).toBeGreaterThan(0);
    expect(facts.calls).toBeLessThan(JSON.parse(karst("info", TRACE, "--format", "json")).calls + 1);
    expect(report(file).find((row) => row.name === serve.name)!.max_ns).toBe(serve.max_ns);
  });

  test("what is seen is saved as PNG", async () => {
    const [download] = await Promise.all([tab.page.waitForEvent("download"), tab.page.locator("[data-testid=png]").click()]);
    const file = join(WORK, "seen.png");
    await download.saveAs(file);
    const bytes = readFileSync(file);
    expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    expect(bytes.readUInt32BE(16)).toBeGreaterThan(1000);
    expect(bytes.length).toBeGreaterThan(10_000);
  });

  test("two calls are compared by what differs", async () => {
    await find("shop::serve");
    const longest = await callNs();
    await tab.press("c", "Shift+N");
    await until(callNs, (ns) => ns !== longest, "another call");
    const second = await callNs();
    await tab.press("c");
    // One above the other, each with its own length.
    const lengths = await until(() => tab.page.locator("[data-testid=aligned-sum]").allInnerTexts(), (t) => t.length === 1, "the flows");
    expect(lengths[0]).toMatch(second < longest ? /^A .*, B .*: .* shorter/ : /^A .*, B .*: .* longer/);
    const cells = (side: string) => tab.page.locator(`[data-testid=aligned-${side}] [role=treeitem]`);
    expect(await cells("a").first().getAttribute("aria-label")).toContain("shop::serve");
    // What is a pair begins at the same place.
    const places = async (side: string) =>
      new Map(await cells(side).evaluateAll((all) => all.map((cell) => [cell.getAttribute("data-node")!, (cell as HTMLElement).style.left] as const)));
    const [inA, inB] = [await places("a"), await places("b")];
    const common = [...inA.keys()].filter((node) => inB.has(node));
    expect(common.length).toBeGreaterThan(2);
    for (const node of common) expect(inB.get(node)).toBe(inA.get(node));
    await tab.page.getByRole("radio", { name: "By path" }).click();
    const text = await until(() => tab.page.locator("[data-testid=compare-sum]").allInnerTexts(), (t) => t.length === 1, "the comparison");
    expect(text[0]).toMatch(/^A .* · B /);
    const rest = tab.page.locator(".compare-rows .call-line").first();
    expect(await rest.innerText()).toContain("shop::rest(int)");
    expect(await rest.innerText()).toContain("−");
  });

  test("highlighting marks all calls of a function, and ends with Escape", async () => {
    await tab.page.locator(`.grid-row[data-function="${serve.name}"]`).click();
    const marked = () => tab.page.locator("[data-testid=highlighted]").allInnerTexts();
    await until(marked, (texts) => texts.length === 1 && texts[0]!.includes(`${serve.calls} calls`), "highlighting");
    await tab.settle();
    await tab.press("Escape");
    await until(marked, (texts) => texts.length === 0, "no highlighting");
  });

  test("its files are under 150 KB, compressed", async () => {
    const files = [...new Set(tab.asked.filter((address) => !address.includes("/api/") && address.startsWith("http")))];
    expect(files.length).toBeGreaterThan(2);
    let bytes = 0;
    for (const address of files) bytes += gzipSync(Buffer.from(await (await fetch(address)).arrayBuffer())).length;
    expect(bytes).toBeLessThan(150_000);
  });

  test("the page may load and run nothing but its own files", async () => {
    const response = await fetch(viewer.address);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    expect(await response.text()).not.toMatch(/<script(?![^>]*src=)[^>]*>|<style/);
  });
});

describe("other pages", () => {
  test.each([
    ["narrow", { viewport: { width: 800, height: 600 } }],
    ["200% zoom of 1280x720", { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 }],
    ["dark, wide", { viewport: { width: 1920, height: 1080 }, colorScheme: "dark" as const }],
  ])("%s: nothing sticks out, and the timeline has room", async (_, options) => {
    tab = await Tab.open(browser, viewer.address, options);
    await tab.settle();
    await find("shop::serve");
    const out = await tab.page.evaluate(() => [document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]);
    expect(Math.max(...out)).toBeLessThanOrEqual(0);
    expect((await tab.page.locator("[data-testid=timeline]").boundingBox())!.height).toBeGreaterThan(80);
    expect(tab.errors).toEqual([]);
    await tab.close();
  });

  test("a wrong token is refused", async () => {
    const wrong = viewer.address.replace(/\/([^/]+)\/?$/, (_, token: string) => `/${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}/`);
    expect((await fetch(wrong)).status).toBe(403);
    expect((await fetch(`${wrong}api/trace`)).status).toBe(403);
    expect((await fetch(`${viewer.address}api/trace`, { headers: { origin: "http://evil.example" } })).status).toBe(403);
  });

  test("two traces are shown side by side", async () => {
    const both = await Viewer.start(TRACE, TRACE);
    try {
      tab = await Tab.open(browser, both.address);
      await tab.settle();
      expect(await tab.page.locator(".head.process .title").allInnerTexts()).toContain("A · shop");
      await tab.press("5");
      const flows = await until(() => tab.page.locator("[data-testid=aligned-sum]").allInnerTexts(), (t) => t.length === 1, "the flows");
      expect(flows[0]).toContain("the same");
      await tab.page.getByRole("radio", { name: "By path" }).click();
      const sum = await until(() => tab.page.locator("[data-testid=compare-sum]").allInnerTexts(), (t) => t.length === 1, "the comparison");
      const [, a, b] = /A (.*) · B (.*)/.exec(sum[0]!)!;
      expect(a).toBe(b);
      expect(tab.errors).toEqual([]);
      await tab.close();
    } finally {
      both.stop();
    }
  });

  test("a cut trace is shown as far as it goes, and said to be cut", async () => {
    const cut = join(WORK, "cut.karst");
    const bytes = readFileSync(TRACE);
    writeFileSync(cut, bytes);
    truncateSync(cut, Math.floor(bytes.length * 0.8));
    const damaged = await Viewer.start(cut);
    try {
      tab = await Tab.open(browser, damaged.address);
      await tab.settle();
      expect(await tab.page.locator("[data-testid=problems]").count()).toBe(1);
      await tab.page.locator("[data-testid=problems]").click();
      await until(() => tab.page.locator(".popover").allInnerTexts(), (texts) => /cut|damaged/.test(texts[0] ?? ""), "the problems");
      await tab.close();
    } finally {
      damaged.stop();
    }
  });

  test("what is no trace at all gives a page that says so", async () => {
    const none = join(WORK, "none.karst");
    writeFileSync(none, "this is not a trace\n".repeat(100));
    const failing = await Viewer.start(none);
    try {
      tab = await Tab.open(browser, failing.address);
      const text = await until(() => tab.page.locator("[role=alert]").allInnerTexts(), (t) => t.length > 0, "an explanation");
      expect(text[0]).toContain("cannot be shown");
      expect(text[0]).toContain("none.karst");
      await tab.close();
    } finally {
      failing.stop();
    }
  });

  test("an exported page works from its file, with the network off", async () => {
    const file = join(WORK, "shop.html");
    karst("export", TRACE, "--to", "html", "-o", file);
    tab = await Tab.open(browser, `file://${file}`, { offline: true });
    await tab.settle();
    for (const address of tab.asked) expect(address).toMatch(/^(file|data|blob):/);
    await until(() => tab.page.locator(".grid-body .grid-row").count(), (n) => n > 5, "the table");
    const self = await tab.page.$$eval(".grid-body .grid-row", (elements) =>
      elements.map((e) => [e.getAttribute("data-function"), Number(e.querySelector("[data-column=self]")!.getAttribute("data-ns")), Number(e.querySelector("[data-column=total]")!.getAttribute("data-ns"))] as const),
    );
    expect(self.length).toBeGreaterThan(5);
    for (const [name, ns, total] of self) {
      const truth = rows.find((row) => row.name === name)!;
      // Whole ns for each call in the file, ticks in the report: a call may differ by 1 ns and so may each callee.
      expect(Math.abs(total - truth.total_ns)).toBeLessThanOrEqual(truth.calls + 1);
      expect(Math.abs(ns - truth.self_ns)).toBeLessThanOrEqual(truth.calls * 40 + 1);
    }
    await find("shop::serve");
    expect(Math.abs((await callNs()) - serve.max_ns)).toBeLessThanOrEqual(1);
    await until(() => tab.page.locator(".line.own").count(), (n) => n > 2, "source");
    expect(tab.errors).toEqual([]);
    await tab.close();
  });
});
