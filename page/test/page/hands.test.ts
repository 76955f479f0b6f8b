// What a person does with keys and mouse, and what comes of it: views, selections, ranges, files.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { karst, report, Session, TRACE, until, WORK, type Tab } from "./browser";

const session = new Session();
let tab: Tab;
const rows = report();
const serve = rows.find((row) => row.name.startsWith("shop::serve("))!;
const callName = () => tab.page.locator("[data-testid=call-name]").innerText();

describe("by keyboard and mouse", () => {
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
    for (const [key, label] of [
      ["2", "Functions"],
      ["3", "Flame graph"],
      ["4", "Range"],
      ["5", "Compare"],
      ["1", "Call"],
    ] as const) {
      await tab.press(key);
      await until(
        () => tab.page.locator("[role=tab][aria-selected=true]").innerText(),
        (text) => text === label,
        label,
      );
    }
    const there = (selector: string, n: number) =>
      until(
        () => tab.page.locator(selector).count(),
        (now) => now === n,
        `${n} ${selector}`,
      );
    await tab.press("b");
    await there("[role=tabpanel]", 0);
    await tab.press("b", "?");
    await there("dialog[open]", 1);
    await tab.press("Escape");
    await there("dialog[open]", 0);
    // Everything that can be clicked can be reached by Tab, and has a name.
    const unnamed = await tab.page.$$eval("button, a, input, select, [role=tab], [role=treeitem]", (all) =>
      all
        .filter(
          (e) =>
            !(e.getAttribute("aria-label") || e.getAttribute("title") || e.textContent?.trim() || e.closest("label")),
        )
        .map((e) => e.outerHTML),
    );
    expect(unnamed).toEqual([]);
    const unreachable = await tab.page.$$eval("button:not([role]):not(:disabled), input, select", (all) =>
      all.filter((e) => (e as HTMLElement).tabIndex < 0).map((e) => e.outerHTML),
    );
    expect(unreachable).toEqual([]);
  });

  test("mouse: the wheel zooms at the pointer, a pinch does too, dragging moves, Shift and the wheel scroll", async () => {
    const view = async () => {
      const [, begin, span] = /t=(-?[\d.]+)\+([\d.]+)/.exec(await tab.page.evaluate(() => location.hash)) ?? [];
      return {
        begin: Number(begin),
        span: Number(span),
        y: Number(/&y=(\d+)/.exec(await tab.page.evaluate(() => location.hash))?.[1] ?? 0),
      };
    };
    const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
    const at = { x: box.x + box.width / 4, y: box.y + 60 };
    await tab.page.mouse.move(at.x, at.y);
    await tab.page.mouse.wheel(0, -1);
    const before = await until(view, (v) => v.span > 0, "an address");
    await tab.page.mouse.wheel(0, -200);
    const closer = await until(view, (v) => v.span < before.span * 0.9, "a closer view");
    // The moment under the pointer stays.
    expect(Math.abs(closer.begin + closer.span / 4 - (before.begin + before.span / 4)) / before.span).toBeLessThan(
      0.01,
    );
    await tab.page.keyboard.down("Control");
    await tab.page.mouse.wheel(0, -30);
    await tab.page.keyboard.up("Control");
    const pinched = await until(view, (v) => v.span < closer.span * 0.9, "a pinched view");
    await tab.page.mouse.down();
    await tab.page.mouse.move(at.x + 100, at.y, { steps: 4 });
    await tab.page.mouse.up();
    const moved = await until(view, (v) => v.begin < pinched.begin, "a moved view");
    expect((pinched.begin - moved.begin) / pinched.span).toBeCloseTo(100 / box.width, 2);
    // As high as the depth in view: all of it may fit into a usual window.
    const size = tab.page.viewportSize()!;
    await tab.page.setViewportSize({ width: size.width, height: 360 });
    await tab.page.keyboard.down("Shift");
    await tab.page.mouse.wheel(0, 120);
    await tab.page.keyboard.up("Shift");
    await until(view, (v) => v.y > 0, "scrolled tracks");
    await tab.page.setViewportSize(size);
  });

  test("a reload and a link restore the view, the selection, filters and tab", async () => {
    await tab.find("shop::price");
    await tab.press("f", "3");
    await tab.page.locator("[data-testid=thread-filter]").fill("clerk");
    const written = () => tab.page.evaluate(() => location.hash);
    await until(
      written,
      (text) => /sel=0\.\d+\.\d+/.test(text) && text.includes("threads=clerk") && text.includes("tab=flame"),
      "an address",
    );
    await tab.page.waitForTimeout(500);
    const hash = await written();
    await tab.page.reload();
    await tab.settle();
    await tab.page.waitForTimeout(500);
    await until(
      () => tab.page.evaluate(() => location.hash),
      (now) => now === hash,
      "the same address",
    );
    expect(await tab.page.locator("[role=tab][aria-selected=true]").innerText()).toBe("Flame graph");
    await tab.press("1");
    await until(callName, (name) => name.startsWith("shop::price("), "the selected call");
  });

  test("a range measured by dragging: its length, its calls; saved, it is a trace of its own", async () => {
    await tab.find("shop::serve");
    await tab.press("f");
    await tab.settle();
    const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
    await tab.page.mouse.move(box.x + box.width * 0.3, box.y + 12);
    await tab.page.mouse.down();
    await tab.page.mouse.move(box.x + box.width * 0.6, box.y + 12, { steps: 6 });
    await tab.page.mouse.up();
    const length = await until(
      () => tab.ns("[data-testid=range-length]"),
      (ns) => ns > 0,
      "a length",
    );
    // The call takes 80% of the window, so 30% of that is 3/8 of it.
    expect(length / serve.max_ns).toBeCloseTo(0.375, 1);
    await until(
      () => tab.page.locator("[data-testid=range-calls]").innerText(),
      (text) => /^[\d,]+ overlap/.test(text),
      "calls",
    );
    const [download] = await Promise.all([
      tab.page.waitForEvent("download"),
      tab.page.locator("[data-testid=save-range]").click(),
    ]);
    const file = join(WORK, "range.karst");
    await download.saveAs(file);
    const facts = JSON.parse(karst("info", file, "--format", "json"));
    expect(facts.calls).toBeGreaterThan(0);
    expect(facts.calls).toBeLessThan(JSON.parse(karst("info", TRACE, "--format", "json")).calls + 1);
    const longest = (trace: string) => report(trace, "--raw").find((row) => row.name === serve.name)!.max_ns;
    expect(longest(file)).toBe(longest(TRACE));
  });

  test("what is seen is saved as PNG", async () => {
    const [download] = await Promise.all([
      tab.page.waitForEvent("download"),
      tab.page.locator("[data-testid=png]").click(),
    ]);
    const file = join(WORK, "seen.png");
    await download.saveAs(file);
    const bytes = readFileSync(file);
    expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    expect(bytes.readUInt32BE(16)).toBeGreaterThan(1000);
    expect(bytes.length).toBeGreaterThan(10_000);
  });

  test("Ctrl+C copies the selected call as a line, and text where text is selected", async () => {
    await tab.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const copied = () => tab.page.evaluate(() => navigator.clipboard.readText());
    await tab.find("shop::serve");
    await tab.press("Control+c");
    const line = await until(copied, (text) => text.startsWith(serve.name), "the call");
    expect(line).toMatch(/, at [\d.]+ \S+, [\d.]+ \S+ as recorded, in clerk(-0)? \d+$/);
    await tab.page.locator("[data-testid=sentence]").click({ clickCount: 3 });
    await tab.press("Control+c");
    await until(copied, (text) => /^Took /.test(text), "the sentence");
  });

  test("a right click, or the menu key, tells what one can do with a call, and does it", async () => {
    await tab.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const copied = () => tab.page.evaluate(() => navigator.clipboard.readText());
    const menu = tab.page.locator("[data-testid=menu]");
    const entry = (name: string) => menu.getByRole("menuitem", { name });
    const open = (n: 0 | 1) =>
      until(
        () => menu.count(),
        (now) => now === n,
        n === 1 ? "a menu" : "no menu",
      );
    await tab.find("shop::serve");
    await tab.press("f");
    await tab.settle();
    await tab.page.locator("[data-testid=timeline]").focus();
    await tab.press("ContextMenu");
    await open(1);
    expect(await menu.getAttribute("aria-label")).toContain("shop::serve");
    await tab.press("ArrowDown", "Escape");
    await open(0);
    expect(await callName()).toBe(serve.name);
    // Where the key's menu stood, just below the call's begin, lies the call.
    await tab.press("Shift+F10");
    await open(1);
    const corner = (await menu.boundingBox())!;
    await tab.press("Escape");
    await open(0);
    await tab.press("Escape");
    await tab.page.mouse.click(corner.x + 20, corner.y - 6, { button: "right" });
    await open(1);
    expect(await callName()).toBe(serve.name);
    await entry("Copy its name").click();
    await until(copied, (text) => text === serve.name, "the name");
    await tab.page.mouse.click(corner.x + 20, corner.y - 6, { button: "right" });
    await entry("Copy a link").click();
    const link = await until(copied, (text) => text.includes("#t="), "a link");
    expect(link).toMatch(/&sel=0\.\d+\.\d+/);
    await tab.page.mouse.click(corner.x + 20, corner.y - 6, { button: "right" });
    await open(1);
    await tab.press("e");
    await open(0);
    await until(
      () => tab.page.evaluate(() => location.hash),
      (hash) => hash.includes("why="),
      "an explanation",
    );
  });

  test("two calls are compared by what differs", async () => {
    await tab.find("shop::serve");
    // As flows are compared: without what tracing took.
    const took = () => tab.ns('[data-fact="without tracing"]');
    const longest = await took();
    await tab.press("c", "Shift+N");
    await until(took, (ns) => ns !== longest, "another call");
    const second = await took();
    await tab.press("c");
    // One above the other, each with its own length.
    const lengths = await until(
      () => tab.page.locator("[data-testid=aligned-sum]").allInnerTexts(),
      (t) => t.length === 1,
      "the flows",
    );
    expect(lengths[0]).toMatch(second < longest ? /^A .*, B .*: .* shorter/ : /^A .*, B .*: .* longer/);
    const cells = (side: string) => tab.page.locator(`[data-testid=aligned-${side}] [role=treeitem]`);
    expect(await cells("a").first().getAttribute("aria-label")).toContain("shop::serve");
    // What is a pair begins at the same place.
    const places = async (side: string) =>
      new Map(
        await cells(side).evaluateAll((all) =>
          all.map((cell) => [cell.getAttribute("data-node")!, (cell as HTMLElement).style.left] as const),
        ),
      );
    const pairs = await until(
      async () => {
        const [inA, inB] = [await places("a"), await places("b")];
        return [...inA].filter(([node]) => inB.has(node)).map(([node, at]) => [at, inB.get(node)!] as const);
      },
      (all) => all.length > 2,
      "what both have",
    );
    for (const [a, b] of pairs) expect(b).toBe(a);
    await tab.page.getByRole("radio", { name: "By path" }).click();
    const text = await until(
      () => tab.page.locator("[data-testid=compare-sum]").allInnerTexts(),
      (t) => t.length === 1,
      "the comparison",
    );
    expect(text[0]).toMatch(/^A .* · B /);
    const rest = tab.page.locator(".compare-rows .call-line").first();
    expect(await rest.getAttribute("title")).toMatch(/^shop::rest\(int\)\n/);
    expect(await rest.innerText()).toContain("−");
  });
});
