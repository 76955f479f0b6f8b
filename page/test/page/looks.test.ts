// How a program wants itself shown: pictures of frames, colours, groups of threads, plots' units, what it says of itself.
// The program (test/e2e/notes/looks.c) paints by a formula that is here as well.
import { beforeAll, expect, test } from "vitest";
import { tonedColour } from "../../src/model/colour";
import { drawn, listen, Session, until, type Tab } from "./browser";
import { build, record } from "./record";

const session = new Session();
let trace = "";

beforeAll(() => {
  ({ trace } = record("looks.karst", [], [build("notes/looks.c", "looks")]));
});

const pixels = (tab: Tab, at = "frame-picture") =>
  tab.page.locator(`[data-testid=${at}]`).evaluate((element) => {
    const canvas = element as HTMLCanvasElement;
    const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
    return { width: canvas.width, height: canvas.height, data: [...data] };
  });

/** Of the program's formula; `line`: of 90 that the picture has without the last two. */
const painted = (column: number, line: number, frame: number) => [(column * 255) / 160, (line * 255) / 90, frame * 50];

async function choose(tab: Tab, number: number): Promise<void> {
  await tab.page.locator(`[data-testid=slow-frame][data-number="${number}"]`).click();
  await until(
    () => tab.page.locator("[data-testid=frame-name]").innerText(),
    (text) => text.trim() === `main ${number}`,
    `frame ${number}`,
  );
}

test("a frame's picture is what the program painted", async () => {
  const tab = await session.open([trace], "#tab=frames", {}, listen);
  await tab.settle();
  // The second one was handed over from the bottom up; the last but one was handed over again, as the sixth.
  for (const [number, shows] of [
    [1, 0],
    [2, 1],
    [3, 2],
    [4, 3],
    [5, 5],
  ] as const) {
    await choose(tab, number);
    const { width, height, data } = await until(
      () => pixels(tab),
      ({ data: found }) => Math.abs(found[2]! - shows * 50) < 6,
      `the picture of frame ${number}`,
    );
    expect([width, height]).toEqual([160, 92]);
    for (let line = 0; line < 90; line += 7)
      for (let column = 0; column < 160; column += 11)
        painted(column, line, shows).forEach((value, c) =>
          expect(Math.abs(data[(line * width + column) * 4 + c]! - value), `${column}, ${line}`).toBeLessThan(16),
        );
  }
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("over the bar of frames the pointer shows what each of them showed", async () => {
  const tab = await session.open([trace], "#tab=frames", {}, listen);
  await tab.settle();
  const heads = tab.page.locator(".heads .head");
  await until(
    () => heads.allInnerTexts(),
    (texts) => texts.some((text) => /^main\b/.test(text)),
    "the frames' bar",
  );
  const at = (await heads.allInnerTexts()).findIndex((text) => /^main\b/.test(text));
  const row = (await heads.nth(at).boundingBox())!;
  const area = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  await tab.settle();
  const seen = new Map<number, number>();
  for (let x = 0; x < 1 && seen.size < 3; x += 0.008) {
    await tab.page.mouse.move(area.x + x * area.width, row.y + row.height / 2);
    await tab.page.waitForTimeout(40);
    const tip = (await tab.page.locator(".tip").allInnerTexts())[0] ?? "";
    const number = Number(/^main (\d+)/.exec(tip)?.[1] ?? 0);
    if (number === 0 || seen.has(number)) continue;
    const picture = tab.page.locator("[data-testid=tip-picture]");
    if (number > 5) continue;
    await picture.waitFor();
    const { data } = await pixels(tab, "tip-picture");
    seen.set(number, data[2]!);
  }
  expect(seen.size).toBeGreaterThan(1);
  for (const [number, blue] of seen) expect(Math.abs(blue - [0, 0, 1, 2, 3, 5][number]! * 50)).toBeLessThan(16);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("threads of a group stand together, plots have units, and the program says what it is", async () => {
  const tab = await session.open([trace], "#tab=notes", { viewport: { width: 1440, height: 1800 } }, listen);
  await tab.settle();
  await until(
    async () => (await drawn(tab)).said,
    (said) => said.includes("24.5 °C") && said.includes("4"),
    "a plot with its unit, and one without",
  );
  const names = await tab.page.locator(".sub").allInnerTexts();
  expect(names.flatMap((text) => /workers|writers/.exec(text) ?? [])).toEqual(["workers", "workers", "writers"]);
  await tab.page.locator("[data-testid=about] button, button[data-testid=about]").first().click();
  const about = await tab.page.locator(".problems", { hasText: "About" }).innerText();
  expect(about).toContain("version 1.2");
  expect(about).toContain("settings: fast");
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a zone and a call have the program's colour, in the lightness of the theme", async () => {
  const tab = await session.open([trace], "#tab=notes", {}, listen);
  await tab.settle();
  const wanted = [0x2080ff, 0xff8000].map((colour) =>
    (["light", "dark"] as const).map((theme) => tonedColour(colour, theme)).map(({ r, g, b }) => [r, g, b]),
  );
  const count = () =>
    tab.page
      .locator(".canvas-area canvas")
      .first()
      .evaluate((element, colours) => {
        const canvas = element as HTMLCanvasElement;
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
        const found = colours.map(() => 0);
        for (let i = 0; i < data.length; i += 4)
          colours.forEach((inThemes, n) => {
            if (inThemes.some((colour) => colour.every((value, c) => value === data[i + c]))) ++found[n]!;
          });
        return found;
      }, wanted);
  // Of each thread's four calls two have the zone's colour, and two one that was said later.
  await until(count, ([blue, orange]) => blue! > 100 && orange! > 100, "both colours");
  const rows = tab.page.locator("[data-testid=note]", { hasText: "it burns" });
  expect(await rows.locator(".note-sign").evaluate((sign) => getComputedStyle(sign).backgroundColor)).toBe(
    "rgb(255, 0, 0)",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});
