// The search box: functions, and below them what the program said, as `karst notes` prints it.
import { beforeAll, expect, test } from "vitest";
import { karst, Session, until, type Tab } from "./browser";
import { build, record } from "./record";

interface Said {
  time_ns: number;
  kind: string;
  name: string;
  value: string;
  in: string;
}

const session = new Session();
let trace = "";
let all: Said[] = [];

beforeAll(() => {
  const program = build("viewer_notes.cc", "notes");
  ({ trace } = record("search.karst", ["--args", "^jobs::serve"], [program]));
  all = JSON.parse(karst("notes", "--format", "json", trace)).notes;
  all.sort((a, b) => a.time_ns - b.time_ns);
});

const found = (tab: Tab) => tab.page.locator("[data-testid=found-note]");
const sum = (tab: Tab) => tab.page.locator("[data-testid=found-sum]").innerText();
const type = async (tab: Tab, text: string, wanted: string) => {
  await tab.press("/");
  await tab.page.keyboard.insertText(text);
  await until(
    () => sum(tab),
    (now) => now.includes(wanted),
    wanted,
  );
};
const selected = (tab: Tab) => tab.page.locator("[data-testid=note][aria-selected=true]");

test("a text finds notes below the functions, and Enter goes to the first", async () => {
  const full = all.filter(({ name }) => name === "Cache is full");
  expect(full.length).toBe(8);
  const tab = await session.open([trace]);
  await tab.settle();
  await type(tab, "cache IS full", "8 notes");
  expect(await sum(tab)).toContain("No function’s name matches.");
  expect(await found(tab).count()).toBe(8);
  await tab.page.keyboard.press("ArrowDown");
  await tab.page.keyboard.press("Enter");
  await until(
    () => selected(tab).count(),
    (n) => n === 1,
    "a selected note",
  );
  const time = Number(await selected(tab).getAttribute("data-time"));
  expect(Math.abs(time - full[1]!.time_ns)).toBeLessThanOrEqual(1);
  // Its time is in view.
  const [begin, span] = await tab.page.evaluate(async () => {
    await new Promise((resolve) => setTimeout(resolve, 600));
    return /t=([-\d.]+)\+([\d.]+)/.exec(location.hash)!.slice(1).map(Number);
  });
  expect(time).toBeGreaterThanOrEqual(begin!);
  expect(time).toBeLessThanOrEqual(begin! + span!);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("functions come first; Enter before the answer takes a note where no function is named so", async () => {
  const tab = await session.open([trace]);
  await tab.settle();
  const requests = all.filter(({ value }) => value.includes("/shop/item/"));
  await type(tab, "serve", "1 function");
  const options = await tab.page.locator("#found [role=option]").allInnerTexts();
  expect(options[0]).toContain("serve");
  await tab.press("Escape");
  await tab.press("/");
  await tab.page.keyboard.insertText("/shop/item");
  await tab.press("Enter");
  await until(
    () => selected(tab).count(),
    (n) => n === 1,
    "a selected note",
  );
  const time = Number(await selected(tab).getAttribute("data-time"));
  expect(Math.abs(time - requests[0]!.time_ns)).toBeLessThanOrEqual(1);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("what calls were given is found by its values, and the panel lists all of it", async () => {
  const given = all.filter(({ kind, value }) => kind === "arguments" && value.includes("id=2"));
  expect(given.length).toBe(40);
  const tab = await session.open([trace]);
  await tab.settle();
  await type(tab, "id=2", `${given.length} notes`);
  expect(await found(tab).count()).toBe(8);
  expect(await found(tab).first().innerText()).toContain("serve");
  await tab.page.locator("[data-testid=found-all-notes]").dispatchEvent("mousedown");
  await until(
    () => tab.page.locator("[data-testid=note-sum]").innerText(),
    (text) => text.startsWith(`${given.length} notes`),
    "all of them in the panel",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});
