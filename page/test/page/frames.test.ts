// Frames on the page: a bar above the threads, coloured against a target, and a panel that names the slowest. The
// program's own clock says how long each took.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { drawn, KARST, listen, Session, until, WORK, type Tab } from "./browser";
import { build } from "./record";

interface Took {
  number: number;
  ns: number;
}

const session = new Session();
const trace = join(WORK, "frames.karst");
let all: Took[] = [];
let slowest: Took;

beforeAll(() => {
  const program = build("viewer_frames.cc", "game");
  const said = execFileSync(KARST, ["run", "-o", trace, program], { encoding: "utf8", cwd: WORK });
  all = [...said.matchAll(/^Frame (\d+) (\d+)$/gm)].map(([, number, ns]) => ({
    number: Number(number),
    ns: Number(ns),
  }));
  expect(all.length).toBe(79);
  slowest = all.reduce((a, b) => (b.ns > a.ns ? b : a));
});

const lines = (tab: Tab) => tab.page.locator("[data-testid=slow-frame]");
const duration = async (tab: Tab) =>
  Number(await tab.page.locator("[data-fact=frame-duration]").getAttribute("data-ns"));
const name = (tab: Tab) => tab.page.locator("[data-testid=frame-name]").innerText();
const sum = (tab: Tab) => tab.page.locator("[data-testid=frame-sum]").innerText();
/** Between its mark and the program's look at the clock a thread may lose its CPU for a moment. */
const near = (found: number, ns: number) => expect(Math.abs(found - ns)).toBeLessThan(20e6);
const over = (ms: number) => all.filter(({ ns }) => ns > ms * 1e6).length;

test("the panel names the slowest frame, and a click goes to it", async () => {
  const tab = await session.open([trace], "#tab=frames", {}, listen);
  await tab.settle();
  await until(
    () => lines(tab).count(),
    (n) => n === 10,
    "ten slow frames",
  );
  expect(await lines(tab).first().getAttribute("data-number")).toBe(String(slowest.number));
  expect(await sum(tab)).toContain("79 frames");
  await lines(tab).first().click();
  await until(
    () => name(tab),
    (text) => text.trim() === `Frame ${slowest.number}`,
    "the slowest frame",
  );
  near(await duration(tab), slowest.ns);
  expect(await lines(tab).first().getAttribute("class")).toContain("on");
  // It is in view, and says its number and its duration there.
  await until(
    async () => (await drawn(tab)).said.join("\n"),
    (text) => new RegExp(`^${slowest.number}: \\d+(\\.\\d+)?\\sms$`, "m").test(text),
    "its label",
  );
  // The address leads back to it.
  await until(
    () => tab.page.evaluate(() => location.hash),
    (hash) => hash.includes(`frame=0.0.${slowest.number}`),
    "its address",
  );
  await tab.page.reload();
  await until(
    () => name(tab),
    (text) => text.trim() === `Frame ${slowest.number}`,
    "the same after a reload",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("the target says which frames are over it, is kept, and refuses what is no time", async () => {
  const tab = await session.open([trace], "#tab=frames");
  await until(
    () => sum(tab),
    (text) => text.includes(`, ${over(16.7)} (`),
    `${over(16.7)} frames over 16.7 ms`,
  );
  const target = tab.page.getByLabel("Target of a frame in milliseconds");
  await target.fill("60");
  await until(
    () => sum(tab),
    (text) => text.includes(`, ${over(60)} (`) && text.includes("over 60 ms"),
    `${over(60)} frames over 60 ms`,
  );
  await target.fill("fast");
  expect(await target.getAttribute("aria-invalid")).toBe("true");
  expect(await sum(tab)).toContain("over 60 ms");
  await tab.page.reload();
  await until(
    () => sum(tab),
    (text) => text.includes("over 60 ms"),
    "the target after a reload",
  );
  expect(await tab.page.locator("[data-testid=histogram-line]").count()).toBe(1);
  await tab.page.getByLabel("Target of a frame in milliseconds").fill("16.7");
  await until(
    () => sum(tab),
    (text) => text.includes("over 16.7 ms"),
    "the first target",
  );
  // One after the other, from the first one on.
  const found: number[] = [];
  const next = tab.page.locator("[data-testid=frame-next]");
  for (const { number } of all.filter(({ ns }) => ns > 16.7e6)) {
    await next.click();
    await until(
      () => name(tab).catch(() => ""),
      (text) => text.trim() === `Frame ${number}`,
      `frame ${number}`,
    );
    found.push(number);
    near(await duration(tab), all[number - 2]!.ns);
  }
  await until(
    () => next.isDisabled(),
    (off) => off,
    "no next one",
  );
  const previous = tab.page.locator("[data-testid=frame-previous]");
  await previous.click();
  await until(
    () => name(tab),
    (text) => text.trim() === `Frame ${found.at(-2)}`,
    "the one before",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("the bars lie above the threads, and a click on one chooses it", async () => {
  const tab = await session.open([trace], "#dock=0");
  await tab.settle();
  await until(
    () => tab.page.locator(".heads .head").allInnerTexts(),
    (heads) => heads.length >= 4 && heads[0]!.includes("Frames"),
    "a heading of frames",
  );
  const heads = await tab.page.locator(".heads .head").allInnerTexts();
  expect(heads[1]).toContain("Frame");
  expect(heads[1]).toContain("80 frames");
  expect(heads[2]).toContain("audio");
  const row = (await tab.page.locator(".heads .head").nth(1).boundingBox())!;
  const area = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  // Where it lies the whole trace's width says, from what api/frame said of it in the first test.
  const where = all.slice(0, slowest.number - 1).reduce((time, { ns }) => time + ns, 0);
  const total = all.reduce((time, { ns }) => time + ns, 0);
  await tab.settle();
  for (let x = (where / total) * 0.9; x < 1; x += 0.01) {
    await tab.page.mouse.move(area.x + x * area.width, row.y + row.height / 2);
    await tab.page.waitForTimeout(40);
    const tip = (await tab.page.locator(".tip").allInnerTexts())[0] ?? "";
    if (!tip.startsWith(`Frame ${slowest.number}`)) continue;
    expect(tip).toContain("over the target of 16.7 ms");
    await tab.page.mouse.down();
    await tab.page.mouse.up();
    break;
  }
  await until(
    () => name(tab).catch(() => ""),
    (text) => text.trim() === `Frame ${slowest.number}`,
    "the clicked frame",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});
