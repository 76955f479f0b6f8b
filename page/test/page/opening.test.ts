// Where a page opens whose address says nothing, and how one goes on from a slow call. The program is the example of a
// server with a rare slow request; what is slow in it, `karst slow` says.
import { beforeAll, expect, test } from "vitest";
import { drawn, karst, listen, Session, SWITCHING, TRACE, until, type Tab } from "./browser";
import { build, record } from "./record";

const session = new Session();
let trace = "";
let kept = "";
/** Of karst slow: the call that stands out most. */
let worst: { function: string; begin_ns: number; duration_ns: number; path: { function: string }[] };

beforeAll(() => {
  const server = build("../../examples/server/server.cc", "server");
  ({ trace } = record("server.karst", [], [server, "3000"]));
  ({ trace: kept } = record(
    "server-kept.karst",
    ["--memory", "1M", "--slowest", "Server::serve:3"],
    [server, "30000"],
  ));
  worst = JSON.parse(karst("slow", trace, "--format", "json", "--limit", "1")).slow[0];
});

const view = async ({ page }: Tab) => {
  const [, begin, span] = /t=(-?[\d.]+)\+([\d.]+)/.exec(await page.evaluate(() => location.hash)) ?? [];
  return { begin: Number(begin), span: Number(span) };
};
const callNs = (tab: Tab) => tab.ns("[data-fact=duration]");

test("the first view names what karst slow names, around the call, without a click", async () => {
  const tab = await session.open([trace], "");
  const first = tab.page.locator("[data-testid=slow]").first();
  expect(await first.getAttribute("data-function")).toBe(worst.function);
  const last = worst.path.at(-1)?.function.replace(/[([].*/, "") ?? "";
  expect(await first.innerText()).toContain(last.split("::").at(-1));
  const { begin, span } = await until(
    () => view(tab),
    (v) => v.span > 0,
    "an address",
  );
  expect(begin).toBeLessThan(worst.begin_ns);
  expect(begin + span).toBeGreaterThan(worst.begin_ns + worst.duration_ns);
  expect(span).toBeLessThan(worst.duration_ns * 3.1);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("the length in the timeline is as recorded, and the list, the tip and the panel say so", async () => {
  const tab = await session.open([TRACE], "#tab=outliers", {}, listen);
  const where = tab.page.locator("[data-testid=slow] .slow-where", { hasText: "as recorded" }).first();
  const [, length] = /^([\d.]+\s\S+ as recorded), at /.exec(await where.innerText())!;
  // Three of the program's threads are named clerk.
  const all = (await tab.page.locator("[data-testid=slow] .slow-where").allInnerTexts()).join("\n");
  expect(all).toMatch(/ in clerk \d+/);
  expect(all).not.toMatch(/ in clerk(,|$)/m);
  await where.click();
  await until(
    async () => (await drawn(tab)).said,
    (said) => said.includes(length!),
    `the bar's ${length}`,
  );
  // It takes a third of the width.
  const area = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  const tip = async () => {
    for (let y = 24; y < area.height; y += 8) {
      await tab.page.mouse.move(area.x + area.width / 2, area.y + y);
      const texts = await tab.page.locator(".tip").allInnerTexts();
      if (texts.some((text) => text.includes(`${length}, at `))) return true;
    }
    return false;
  };
  await until(tip, (found) => found, `the tip's ${length}`);
  await tab.press("1");
  expect(await tab.page.locator("[data-fact=duration]").innerText()).toBe(length);
  expect(await tab.page.locator('[data-fact="without tracing"]').count()).toBe(1);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("an address that says something is obeyed; everything is a key away, and Enter goes back to the call", async () => {
  const tab = await session.open([trace], "#tab=functions");
  await tab.settle();
  await tab.page.waitForTimeout(400);
  expect(await tab.page.locator("[data-testid=slow]").count()).toBe(0);
  await tab.press("6");
  await tab.page.locator("[data-testid=slow]").first().click();
  await tab.press("0");
  const whole = await until(
    () => view(tab),
    (v) => v.span > worst.duration_ns * 1.01,
    "everything",
  );
  await tab.page.locator("[data-testid=timeline]").focus();
  await tab.press("Enter");
  if (whole.span > worst.duration_ns * 3.1)
    await until(
      () => view(tab),
      (v) => Math.abs(v.span / worst.duration_ns - 3) < 0.01,
      "a third of the width",
    );
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a bar of the histogram selects calls, a call of the list is shown, Back undoes it", async () => {
  const tab = await session.open([trace], "");
  const calls = tab.page.locator("[data-testid=by-duration]");
  await until(
    () => calls.count(),
    (n) => n > 50,
    "calls by duration",
  );
  const durations = await calls.evaluateAll((all) => all.map((e) => Number((e as HTMLElement).dataset.ns)));
  expect(durations).toEqual([...durations].sort((a, b) => b - a));
  const bar = tab.page.locator(".by-duration .choice").last();
  await bar.click();
  const words = (await bar.getAttribute("aria-label")) ?? "";
  const inBar = Number(words.split(" ")[0]!.replace(/,/g, ""));
  await until(
    () => calls.count(),
    (n) => n === inBar,
    `the ${inBar} calls of the last bar`,
  );
  await tab.page.getByRole("button", { name: "All durations" }).click();
  await until(
    () => calls.count(),
    (n) => n > 50,
    "all calls",
  );
  const hash = () => tab.page.evaluate(() => location.hash);
  const before = await until(hash, (text) => text.includes("sel="), "an address");
  await tab.page.waitForTimeout(400);
  await calls.nth(5).click();
  const selected = (text: string) => /sel=([\d.]+)/.exec(text)?.[1];
  await until(hash, (text) => selected(text) !== selected(before), "another call");
  await tab.page.goBack();
  await until(hash, (text) => selected(text) === selected(before), "the call before");
  await until(
    () => tab.page.locator("[data-testid=slow].on").count(),
    (n) => n === 1,
    "its line",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a call says in a sentence what was unusual about it", async () => {
  const tab = await session.open([trace], "");
  await until(
    () => tab.page.locator("[data-testid=slow].on").count(),
    (n) => n === 1,
    "a selected call",
  );
  await tab.press("1");
  const text = await until(
    () => tab.page.locator("[data-testid=sentence]").innerText(),
    (words) => words.includes("usual"),
    "the answer",
  );
  expect(text).toMatch(/^Took [\d,.]+× the usual/);
  await tab.close();
});

test("a trace with kept calls opens on the longest, which the list names first; between them nothing was lost", async () => {
  const { threads, processes } = await (await session.viewer(kept)).facts();
  const gaps = threads.flatMap((thread) => thread.gaps);
  expect(gaps.length).toBeGreaterThan(0);
  expect(gaps.filter(({ kind }) => kind !== "overwritten")).toEqual([]);
  const lengths = processes[0]!.moments.map(({ begin, end }) => end - begin).sort((a, b) => b - a);
  expect(processes[0]!.moments.every(({ index }) => index !== null)).toBe(true);

  const tab = await session.open([kept], "");
  const shown = await until(
    () => callNs(tab),
    (ns) => ns > 0,
    "the longest kept call",
  );
  expect(Math.abs(shown - lengths[0]!)).toBeLessThanOrEqual(1);
  await until(
    () => view(tab),
    (v) => v.span < lengths[0]! * 3.2,
    "a view of it",
  );
  await tab.page.locator("[data-testid=kept]").click();
  const lines = await tab.page.locator(".call-line.kept").allInnerTexts();
  expect(lines).toHaveLength(3);
  for (const line of lines) expect(line).toMatch(/Server::serve in /);
  await tab.page.locator(".call-line.kept").nth(2).click();
  await until(
    () => callNs(tab),
    (ns) => Math.abs(ns - shown) > 1,
    "another kept call",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("the address of karst view --kept opens on that moment's call", async () => {
  const { processes } = await (await session.viewer(kept)).facts();
  const shortest = [...processes[0]!.moments].sort((a, b) => a.end - a.begin - (b.end - b.begin))[0]!;
  const tab = await session.open([kept], `#kept=${shortest.number}`);
  const shown = await until(
    () => callNs(tab),
    (ns) => ns > 0,
    "the kept call",
  );
  expect(Math.abs(shown - (shortest.end - shortest.begin))).toBeLessThanOrEqual(1);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("all threads fold into strips, and unfold", async () => {
  const tab = await session.open([trace]);
  await tab.settle();
  const heights = () =>
    tab.page.locator(".head:has(.pin)").evaluateAll((all) => all.map((e) => e.getBoundingClientRect().height));
  const open = Math.max(...(await heights()));
  await tab.page.locator("[data-testid=fold-all]").click();
  const folded = await tab.page
    .locator(".head.folded")
    .evaluateAll((all) => all.map((e) => e.getBoundingClientRect().height));
  expect(folded.length).toBe(5);
  expect(Math.max(...folded)).toBeLessThanOrEqual(22);
  await tab.press("Shift+K");
  await until(heights, (all) => Math.max(...all) === open, "open tracks");
  await tab.close();
});

test("flame graph: what matches is found with its share, what is hidden is gone from the sum", async () => {
  const tab = await session.open([trace], "#tab=flame");
  const total = () => tab.ns("[data-testid=flame-sum]", "data-total");
  const all = await until(total, (n) => n > 0, "a flame graph");
  await tab.page.locator("[data-testid=flame-search]").fill("^main$");
  await until(
    () => tab.page.locator("[data-testid=flame-found]").innerText(),
    (text) => /^\d+\.\d% found/.test(text),
    "what is found",
  );
  await tab.page.locator('.flame-cell[data-function="main"]').click({ modifiers: ["Shift"] });
  await until(total, (n) => n < all, "a smaller sum");
  await tab.page.locator("[data-testid=flame-hidden] button").click();
  await until(total, (n) => n === all, "all of it");
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("two traces: slow calls and flame graphs are of the one that is chosen, and slow calls of both", async () => {
  const tab = await session.open([TRACE, trace], "#tab=outliers");
  const whose = () => tab.page.locator("[data-testid=slow] .whose").allInnerTexts();
  await tab.page.getByRole("radio", { name: "B", exact: true }).click();
  await until(whose, (all) => all.length > 0 && all.every((one) => one === "B"), "the second trace's");
  expect(await tab.page.locator("[data-testid=slow]").first().getAttribute("data-function")).toBe(worst.function);
  await tab.page.getByRole("radio", { name: "Both" }).click();
  await until(whose, (all) => all.includes("B") && all.length > 0, "both");
  await tab.press("3");
  const total = () => tab.ns("[data-testid=flame-sum]", "data-total");
  const sums: number[] = [];
  for (const name of ["A", "B"]) {
    await tab.page.getByRole("radio", { name, exact: true }).click();
    await tab.page.waitForTimeout(500); // what is there before is the other trace's
    sums.push(await until(total, (ns) => ns > 0 && !sums.includes(ns), `the flame graph of ${name}`));
  }
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("two traces: the table says whose a function is, and has those of both", async () => {
  const tab = await session.open([TRACE, SWITCHING]);
  const whose = () => tab.page.locator(".grid-body .whose").allInnerTexts();
  await until(whose, (all) => all.length > 3 && all.every((one) => one === "A"), "the first trace's");
  await tab.page.getByRole("radio", { name: "Both" }).click();
  await until(whose, (all) => all.includes("A") && all.includes("B"), "both");
  await tab.page.getByRole("radio", { name: "B", exact: true }).click();
  await until(whose, (all) => all.length > 0 && all.every((one) => one === "B"), "the second trace's");
  expect(tab.errors).toEqual([]);
  await tab.close();
});
