// What is not in a trace is drawn as such, each kind in its own way, and where `karst info` says; and what was kept.
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { drawn, karst, listen, report, Session, SWITCHING, until, WORK, type Tab } from "./browser";
import { build, record, recordInTurns } from "./record";

interface Switch {
  on: boolean;
  begin_ns: number;
  end_ns: number | null;
  first_function: number;
  reason: string;
}
interface Kept {
  number: number;
  kind: string;
  what: string;
  begin_ns: number;
  end_ns: number;
}
interface Info {
  overwritten_events: number;
  open_calls: number;
  span_ns: number;
  kept: Kept[];
  processes: { switches: Switch[] }[];
}

const session = new Session();
let tab: Tab | undefined;
let outside: string;
let program: string;
let loads: string;

beforeAll(async () => {
  program = build("viewer_outside.cc", "outside");
  loads = build("budget/loads.cc", "loads");
  const price = ["--functions", "shop::price"];
  outside = await recordInTurns("outside.karst", program, [["off", ...price], ["off"], ["on"], ["on", ...price]]);
}, 240_000);
afterEach(async () => {
  expect(tab?.errors ?? []).toEqual([]);
  await tab?.close();
  tab = undefined;
});

const info = (trace: string): Info => JSON.parse(karst("info", trace, "--format", "json"));
const open = async (trace: string, begin: number, span: number) => {
  tab = await session.open([trace], `#t=${begin}+${span}&dock=0`, {}, listen);
  await tab.settle();
  return tab;
};
/** The lines of a list in the bar above. */
const listed = async (name: "missing" | "kept") => {
  await tab!.page.locator(`[data-testid=${name}]`).click();
  return await tab!.page.locator(".popover p, .popover .note").allInnerTexts();
};
const plain = (text: string) => text.replace(/[\u202f\s]+/g, " ").trim();

/** The numbers of patterns that begin at a moment and, if it is in view, end at another one. */
async function patternsOf(begin: number, end: number): Promise<number[]> {
  const page = tab!.page;
  const [, from, span] = /t=(-?[\d.]+)\+([\d.]+)/.exec(await page.evaluate(() => location.hash))!;
  const { width } = (await page.locator("[data-testid=timeline]").boundingBox())!;
  const x = (ns: number) => Math.min(Math.max(((ns - Number(from)) / Number(span)) * width, -2), width + 2);
  const { patterns } = await drawn(tab!);
  return [
    ...new Set(
      patterns
        .filter((p) => Math.abs(p.x - x(begin)) < 1.5 && Math.abs(p.x + p.width - x(end)) < 2.5)
        .map((p) => p.pattern),
    ),
  ];
}

/**
 * Whether the outermost call of the first thread is torn at its begin, and at its end: some of its edge's pixels are not
 * of its colour, while further in all are. The whole trace is in view.
 */
async function torn(): Promise<{ begin: boolean; end: boolean }> {
  return await tab!.page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".canvas-area canvas")!;
    const { data, width } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, 140);
    const at = (x: number, y: number) => data.slice((y * width + x) * 4, (y * width + x) * 4 + 3).join();
    // A row of calls is 17 pixels of one colour; the strip above it is lower.
    const inside = Math.round(width * 0.7);
    let y = 28;
    for (let high = 0; high < 15 && y < 120; ++y) high = at(inside, y) === at(inside, y - 1) ? high + 1 : 0;
    const top = y - 16;
    // Above its words, where the first tooth begins.
    const fill = at(inside, top + 1);
    let left = inside;
    let right = inside;
    while (left > 0 && at(left - 1, top + 1) === fill) --left;
    while (right < width - 1 && at(right + 1, top + 1) === fill) ++right;
    // Where the tooth is deepest, 2 pixels lower, it goes further in.
    const cut = (x: number) => at(x, top + 3) !== fill;
    return { begin: cut(left), end: cut(right) };
  });
}

describe("what is not in a trace", () => {
  test("functions, and all, that were switched off from outside: where karst info says, told apart", async () => {
    const { switches } = info(outside).processes[0]!;
    const [someOff, allOff, allOn, someOn] = [
      switches.find((s) => !s.on && s.first_function !== 0)!,
      switches.find((s) => !s.on && s.first_function === 0)!,
      switches.find((s) => s.on && s.first_function === 0)!,
      switches.filter((s) => s.on && s.first_function !== 0).at(-1)!,
    ];
    const all = { begin: allOff.begin_ns, end: allOn.end_ns! };
    const some = { begin: someOff.begin_ns, end: someOn.end_ns! };
    const length = some.end - some.begin;
    await open(outside, some.begin - length * 0.1, length * 1.2);
    const off = await patternsOf(all.begin, all.end);
    const left = await patternsOf(some.begin, some.end);
    expect([off.length, left.length]).toEqual([1, 1]);
    expect(off).not.toEqual(left);
    const lines = (await listed("missing")).map(plain);
    expect(lines.length).toBe(2);
    expect(lines[0]).toContain("tracing was switched off");
    expect(lines[1]).toContain("1 function switched off: shop::price(int)");
    // A click shows it, and its words then have room.
    await tab!.page.locator(".popover .note").first().click();
    await until(
      async () => (await drawn(tab!)).said,
      (said) => said.includes("tracing was switched off"),
      "its words",
    );
    expect(await tab!.page.locator(".popover").count()).toBe(0);
    // It serves five times 50, and asks for two prices each. While price is off it is not there, while all are nothing
    // is; `on` brings back what was taken.
    const calls = Object.fromEntries(report(outside).map((row) => [row.name, row.calls]));
    expect([calls["shop::serve(int)"], calls["shop::price(int)"]]).toEqual([200, 300]);
    await tab!.press("2");
    const shown = await until(
      () =>
        tab!.page.$$eval(".grid-body .grid-row", (rows) =>
          rows.map((row) => [
            row.getAttribute("data-function"),
            row.querySelector("[data-column=calls]")!.textContent.split(" ")[0],
          ]),
        ),
      (rows) => rows.length >= 3,
      "the table",
    );
    expect(Object.fromEntries(shown)["shop::price(int)"]).toBe("300");
  });

  test("functions that a budget left out: from when, and which", async () => {
    const { trace } = record("budget.karst", ["--budget", "5%", "--memory", "64M"], [loads, "hot", "12000000"]);
    const { switches } = info(trace).processes[0]!;
    const first = switches.find((s) => s.reason === "by the budget" && !s.on)!;
    expect(first, "the budget left nothing out").toBeDefined();
    await open(trace, first.begin_ns - 100_000, 1_000_000);
    const { patterns } = await drawn(tab!);
    const { width } = (await tab!.page.locator("[data-testid=timeline]").boundingBox())!;
    expect(patterns.some((p) => Math.abs(p.x - width / 10) < 1.5)).toBe(true);
    const lines = (await listed("missing")).map(plain);
    const names = /^ {2,}(.*) for .*\(by the budget\)$/m.exec(karst("info", trace))![1]!.trim();
    expect(
      lines.some((line) => line.includes("left out by the budget") && line.includes(names)),
      lines.join("\n"),
    ).toBe(true);
  });

  test("history that was overwritten: how much, and calls that began before what is left", async () => {
    const { trace, said } = record("overwritten.karst", ["--memory", "1M"], [loads, "hot", "300000"]);
    const { overwritten_events, span_ns } = info(trace);
    expect(overwritten_events).toBeGreaterThan(0);
    await open(trace, -span_ns * 0.04, span_ns * 1.08);
    const calls = Math.floor(overwritten_events / 2).toLocaleString("en-US");
    const [gap] = (await (await session.viewer(trace)).facts()).threads[0]!.gaps;
    expect(gap!.begin).toBeLessThan(gap!.end);
    expect((await patternsOf(gap!.begin, gap!.end)).length).toBe(1);
    expect((await torn()).begin).toBe(true);
    expect(plain(await tab!.page.locator("[data-testid=missing]").innerText())).toBe(`${calls} overwritten`);
    expect(plain((await listed("missing"))[0]!)).toContain(`About ${calls} calls were overwritten`);
    await tab!.press("Escape");
    await tab!.find("^main$");
    expect(await tab!.page.locator(".facts .mark").innerText()).toContain("begin not known");
    // The run said the same number when it ended.
    expect(said).toContain(`about ${calls} calls overwritten`);
    expect(plain(await tab!.page.locator(".head .mark").first().innerText())).toBe(`${calls} overwritten`);
  });

  test("calls that have no end are drawn open, others are not", async () => {
    // Without thread states: waits are hatched, and the test looks at colours.
    const { trace } = record("open-end.karst", ["--sched", "off"], [join(WORK, "shop")]);
    expect(report(trace).find((row) => row.name === "main")!.open_calls).toBe(1);
    tab = await session.open([trace], "#dock=0", {}, listen);
    await tab.settle();
    expect(await torn()).toEqual({ begin: false, end: true });
    await tab.find("^main$");
    expect(await tab.page.locator("[data-fact=duration]").innerText()).toMatch(/^at least /);
    expect(await tab.page.locator(".facts .mark").innerText()).toBe("end not known");
  });
});

describe("what was kept", () => {
  test("slow calls: as many as karst info lists, and a click shows each", async () => {
    const { kept } = info(SWITCHING);
    expect(new Set(kept.map((k) => k.kind))).toEqual(new Set(["over", "slowest"]));
    await open(SWITCHING, 0, 1_000_000);
    const lines = await listed("kept");
    expect(lines.map((line) => Number(/^\d+/.exec(line)![0])).sort((a, b) => a - b)).toEqual(
      kept.map((k) => k.number).sort((a, b) => a - b),
    );
    const longest = kept.reduce((a, b) => (b.end_ns - b.begin_ns > a.end_ns - a.begin_ns ? b : a));
    await tab!.page.locator(".popover .note", { hasText: new RegExp(`^${longest.number}:`) }).click();
    const view = async () => {
      const [, begin, span] = /t=(-?[\d.]+)\+([\d.]+)/.exec(await tab!.page.evaluate(() => location.hash))!;
      return { begin: Number(begin), end: Number(begin) + Number(span) };
    };
    await until(
      view,
      ({ begin, end }) =>
        begin <= longest.begin_ns && end >= longest.end_ns && end - begin < 2 * (longest.end_ns - longest.begin_ns),
      "the kept call",
    );
  });

  test("what led to a trigger: its flag stands where karst info says", async (context) => {
    const { trace, said } = record("trigger.karst", ["--trigger", "shop::alarm"], [program]);
    const refused = said.split("\n").find((line) => /no hardware breakpoint|does not allow breakpoints/.test(line));
    if (refused) return context.skip(refused);
    const { kept } = info(trace);
    expect(kept.map((k) => [k.kind, k.what])).toEqual([["trigger", "shop::alarm (shop::alarm(int))"]]);
    const moment = kept[0]!;
    await open(trace, moment.begin_ns - 10_000, 20_000);
    await until(
      async () => (await drawn(tab!)).said,
      (texts) => texts.includes(`1: trigger ${moment.what}`),
      "its flag",
    );
    const box = (await tab!.page.locator("[data-testid=timeline]").boundingBox())!;
    // The view ends with the trace, which is short on a quick machine.
    const [, begin, span] = /t=([\d.]+)\+([\d.]+)/.exec(await tab!.page.evaluate(() => location.hash))!;
    const x = box.x + ((moment.begin_ns - Number(begin)) / Number(span)) * box.width;
    // Pointed at the track's upper edge.
    let moves = 0;
    const tip = await until(
      async () => {
        // Again and again: the picture may be drawn anew below a pointer that stands still.
        await tab!.page.mouse.move(x, box.y + 29 + (moves++ % 2));
        return tab!.page.locator(".tip").allInnerTexts();
      },
      (tips) => tips.some((text) => text.includes("--kept 1")),
      "what it is",
    );
    expect(tip[0]).toContain("1: trigger shop::alarm");
    expect(karst("tree", trace, "--kept", "1")).toContain("shop::serve");
  });
});
