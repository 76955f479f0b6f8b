// Requests on the page: those of `karst requests`; one that is clicked is the range.
import { beforeAll, expect, test } from "vitest";
import { join } from "node:path";
import { karst, Session, TRACE, until, WORK } from "./browser";
import { build, record } from "./record";

const session = new Session();
let trace = "";
let said: { request: number; begin_ns: number; duration_ns: number; most_in: string }[] = [];

beforeAll(() => {
  ({ trace } = record(
    "requests.karst",
    [],
    [build("notes/requests.cc", "requests"), join(WORK, "requests.log"), "50"],
  ));
  said = JSON.parse(karst("requests", "--json", trace)).requests;
});

test("the list is the command's, sorts, and a click measures a request", async () => {
  const tab = await session.open([trace], "#tab=requests");
  const lines = tab.page.locator("[data-testid=request]");
  await until(
    () => lines.count(),
    (n) => n === said.length,
    "all requests",
  );
  const ids = () => lines.evaluateAll((all) => all.map((e) => Number((e as HTMLElement).dataset.request)));
  const durations = new Map(said.map((one) => [one.request, one.duration_ns]));
  const shown = (await ids()).map((id) => durations.get(id)!);
  expect(shown).toEqual([...shown].sort((a, b) => b - a));
  await tab.page.getByRole("button", { name: "Begin" }).click();
  const begins = new Map(said.map((one) => [one.request, one.begin_ns]));
  const byBegin = (await ids()).map((id) => begins.get(id)!);
  expect(byBegin).toEqual([...byBegin].sort((a, b) => a - b));
  await lines.first().focus();
  await tab.press("ArrowDown", "Enter");
  const second = (await ids())[1]!;
  const range = await until(
    () => tab.page.evaluate(() => /range=([\d.]+)\+([\d.]+)/.exec(location.hash)?.slice(1).map(Number)),
    (now) => now !== undefined,
    "a range",
  );
  expect(Math.abs(range![0]! - begins.get(second)!)).toBeLessThanOrEqual(1);
  expect(range![1]).toBe(durations.get(second));
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("requests are a track: who worked on one is below it, and a click measures it", async () => {
  const longest = [...said].sort((a, b) => b.duration_ns - a.duration_ns)[0]!;
  const tab = await session.open([trace], "#tab=functions", { viewport: { width: 1440, height: 1800 } });
  await tab.settle();
  const heads = tab.page.locator(".heads .head");
  const texts = await until(
    () => heads.allInnerTexts(),
    (all) => all.some((text) => text.includes(`${said.length} requests`)),
    "the track of requests",
  );
  const row = (await heads.nth(texts.findIndex((text) => text.includes(`${said.length} requests`))).boundingBox())!;
  const area = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  await tab.settle();
  // It waited in a queue, so that it is as long as it is idle.
  const { extent } = await (await session.viewer(trace)).facts();
  const x = area.x + ((longest.begin_ns + longest.duration_ns / 2) / extent) * area.width;
  const tips = new Set<string>();
  let clicked = false;
  for (let y = 4; y < row.height && !clicked; y += 5) {
    await tab.page.mouse.move(x, row.y + y);
    await tab.page.waitForTimeout(40);
    const tip = (await tab.page.locator(".tip").allInnerTexts())[0] ?? "";
    tips.add(tip.split("\n")[0]!);
    if (!tip.startsWith(`Request ${longest.request}\n`)) continue;
    expect(tip).toContain("nobody worked on it for");
    await tab.page.mouse.down();
    await tab.page.mouse.up();
    clicked = true;
  }
  expect(clicked, [...tips].join(", ")).toBe(true);
  const range = await until(
    () => tab.page.evaluate(() => /range=([\d.]+)\+([\d.]+)/.exec(location.hash)?.slice(1).map(Number)),
    (now) => now !== undefined,
    "its range",
  );
  expect(range![1]).toBe(longest.duration_ns);
  expect(await tab.page.locator("[data-testid=request].on").getAttribute("data-request")).toBe(`${longest.request}`);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a trace without requests says how to have them", async () => {
  const tab = await session.open([TRACE]);
  await tab.settle();
  await tab.press("7");
  await until(
    () => tab.page.locator(".request-panel").innerText(),
    (text) => text.includes("karst_request_begin(ID)"),
    "the words",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});
