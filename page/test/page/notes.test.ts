// Notes on the page: those of `karst notes`, in a list that follows the view, and messages as marks in the timeline.
import { beforeAll, expect, test } from "vitest";
import { join } from "node:path";
import { karst, listen, drawn, Session, Tab, TRACE, until, WORK } from "./browser";
import { build, record } from "./record";

interface Said {
  time_ns: number;
  kind: string;
  name: string;
  value: string;
  tid: number;
  in: string;
}

const session = new Session();
let trace = "";
let all: Said[] = [];

beforeAll(() => {
  ({ trace } = record("notes.karst", [], [build("viewer_notes.cc", "notes")]));
  all = JSON.parse(karst("notes", "--format", "json", trace)).notes;
  all.sort((a, b) => a.time_ns - b.time_ns);
});

const rows = (tab: Tab) => tab.page.locator("[data-testid=note]");
const times = (tab: Tab) =>
  rows(tab).evaluateAll((found) => found.map((e) => Math.round(Number((e as HTMLElement).dataset.time))));
const sum = (tab: Tab) => tab.page.locator("[data-testid=note-sum]").innerText();
const place = (tab: Tab) => tab.page.evaluate(() => location.hash);
/** That the list says how many there are. */
const counted = (tab: Tab, n: number, more = "") =>
  until(
    () => sum(tab),
    (text) => text.startsWith(`${n.toLocaleString("en")} note`) && text.includes(more),
    `${n} notes`,
  );

/** The page's times are in ns with fractions, the command's are cut to whole ones. */
const near = (found: number[], wanted: readonly Said[]) => {
  expect(found.length).toBe(wanted.length);
  found.forEach((time, i) => expect(Math.abs(time - wanted[i]!.time_ns), `note ${i}`).toBeLessThanOrEqual(1));
};

test("the list has what karst notes has, searches, and takes kinds", async () => {
  const tab = await session.open([trace], "#tab=notes");
  await counted(tab, all.length, "the first 500");
  near(await times(tab), all.slice(0, 500));
  await tab.page.getByRole("button", { name: "Oldest first" }).click();
  await counted(tab, all.length, "the last 500");
  near(await times(tab), all.slice(-500).reverse());
  await tab.page.getByRole("button", { name: "Newest first" }).click();

  const full = all.filter(({ name }) => name === "Cache is full");
  expect(full.length).toBe(8);
  await tab.page.getByLabel("Search in notes").fill("cache IS");
  await counted(tab, full.length);
  near(await times(tab), full);
  await tab.page.getByLabel("Search in notes").fill("length = 3");
  const threes = all.filter(({ name, value }) => name === "queue length" && value === "3");
  expect(threes.length).toBeGreaterThan(5);
  await counted(tab, threes.length);

  await tab.page.getByLabel("Search in notes").fill("");
  await tab.page.getByLabel("Kind of notes").selectOption("frame");
  const frames = all.filter(({ kind }) => kind === "frame");
  await counted(tab, frames.length);
  near(await times(tab), frames);
  expect(await rows(tab).first().innerText()).toContain("frame of main");
  expect(await place(tab)).toContain("nkind=frame");
  await tab.page.reload();
  await counted(tab, frames.length);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("it follows the view, and a note leads to the call that it was said in", async () => {
  const full = all.filter(({ name }) => name === "Cache is full");
  const middle = full[3]!.time_ns;
  const begin = middle - 300_000;
  const inView = all.filter(({ time_ns: time }) => time >= begin && time < begin + 600_000);
  const tab = await session.open([trace], `#tab=notes&t=${begin}+600000`);
  await until(
    () => sum(tab),
    (text) => Math.abs(parseInt(text, 10) - inView.length) <= 1,
    `some ${inView.length} notes in view`,
  );
  await tab.page.getByRole("radio", { name: "All", exact: true }).click();
  await counted(tab, all.length);
  await tab.page.getByLabel("Search in notes").fill("full");
  await counted(tab, full.length);
  await rows(tab).first().focus();
  await tab.press("ArrowDown", "ArrowDown", "Enter");
  await until(
    () => place(tab),
    (hash) => hash.includes("sel="),
    "a selected call",
  );
  expect(await rows(tab).nth(2).getAttribute("aria-selected")).toBe("true");
  // Its time has come into view, the zoom is as it was.
  const [at, span] = /t=([-\d.]+)\+([\d.]+)/
    .exec(await place(tab))!
    .slice(1)
    .map(Number) as [number, number];
  expect(span).toBe(600_000);
  expect(full[2]!.time_ns).toBeGreaterThan(at);
  expect(full[2]!.time_ns).toBeLessThan(at + span);
  await tab.press("1");
  await until(
    () => tab.page.locator("[data-testid=call-name]").innerText(),
    (name) => name === full[2]!.in,
    `the call of ${full[2]!.in}`,
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("texts are shown, whatever they are, and never obeyed", async () => {
  const tab = await session.open([trace], "#tab=notes&nq=onerror");
  await counted(tab, 1);
  const text = await rows(tab).first().locator(".said").innerText();
  expect(text).toBe("<img src=x onerror=alert(1)>\\x0a\\x1b[31m\\u{202e} tail");
  expect(await tab.page.locator(".note-list img").count()).toBe(0);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

/** The height at which the pointer finds a message of this text at a time; with what it shows there. */
async function findMark(tab: Tab, time: number, text: string): Promise<{ x: number; y: number; tip: string }> {
  const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  const [begin, span] = /t=([-\d.]+)\+([\d.]+)/
    .exec(await place(tab))!
    .slice(1)
    .map(Number) as [number, number];
  const x = box.x + ((time - begin) / span) * box.width;
  for (let y = box.y + 32; y < box.y + box.height; y += 6) {
    await tab.page.mouse.move(x, y);
    await tab.page.waitForTimeout(30);
    const tip = (await tab.page.locator(".tip").allInnerTexts())[0] ?? "";
    if (tip.startsWith(text)) return { x, y, tip };
  }
  throw new Error(`no mark of ${text} at ${time}`);
}

test("messages are marks in the timeline: a click selects one, or takes many apart", async () => {
  const full = all.filter(({ name }) => name === "Cache is full");
  const begin = full[0]!.time_ns - 1e6;
  const tab = await session.open([trace], `#t=${begin}+4000000`, {}, listen);
  await tab.settle();
  expect((await drawn(tab)).said).toContain("Cache is full");
  const one = await findMark(tab, full[0]!.time_ns, "Cache is full");
  expect(one.tip).toContain("message at");
  await tab.page.mouse.click(one.x, one.y);
  await until(
    () => place(tab),
    (hash) => hash.includes("sel=") && hash.includes("tab=notes"),
    "the note and its call",
  );
  await until(
    () => tab.page.locator("[data-testid=note][aria-selected=true]").allInnerTexts(),
    (found) => found.length === 1 && found[0]!.includes("Cache is full"),
    "the chosen note in the list",
  );

  const many = all.filter(({ name }) => name === "one of many");
  const middle = many[Math.floor(many.length / 2)]!.time_ns;
  const span = Math.round(all.at(-1)!.time_ns * 0.9);
  await tab.page.evaluate((hash) => (location.hash = hash), `#t=${middle - span / 2}+${span}`);
  await tab.page.waitForTimeout(100);
  await tab.settle();
  const dense = await findMark(tab, middle, "one of many");
  expect(dense.tip).toMatch(/the first of [\d,]+ messages/);
  await tab.page.mouse.click(dense.x, dense.y);
  await until(
    () => place(tab),
    (hash) => Number(/\+([\d.]+)/.exec(hash)![1]) < span / 4,
    "a closer look",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("values are plots below the threads, and the pointer reads them", async () => {
  const span = all.at(-1)!.time_ns;
  const tab = await session.open([trace], `#t=0+${span}&dock=0`);
  await tab.settle();
  const heads = tab.page.locator(".heads .head");
  await until(
    () => heads.locator(".title").allInnerTexts(),
    (found) => ["load", "queue length"].every((name) => found.includes(name)),
    "a plot for each name",
  );
  await tab.settle();
  // A value stays until the next one of its name: read it behind the last one of all.
  const last = all.filter(({ name }) => name === "queue length").at(-1)!;
  const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  const head = (await heads.filter({ hasText: "queue length" }).boundingBox())!;
  await tab.page.mouse.move(box.x + (last.time_ns / span) * box.width + 4, head.y + head.height / 2);
  await until(
    async () => (await tab.page.locator(".tip").allInnerTexts())[0] ?? "",
    (tip) => tip.startsWith("queue length") && tip.includes(`${last.value} at `),
    `the value ${last.value}`,
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("memory that lives is a plot, also of a program that has no values", async () => {
  const program = build("memory/random.cc", "memory_random");
  const made = record("memory.karst", ["--system", "memory"], [program, "1", "1", "300"]).trace;
  const told = JSON.parse(karst("memory", "--format", "json", made)).all;
  const tab = await session.open([made], "#dock=0");
  await tab.settle();
  const heads = tab.page.locator(".heads .head");
  await until(
    () => heads.locator(".title").allInnerTexts(),
    (found) => found.some((title) => title.startsWith("living memory (MiB)")),
    "a plot of it",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
  const list = await session.open([made], "#tab=notes");
  await list.settle();
  const kinds = await list.page.getByLabel("Kind of notes").locator("option").allInnerTexts();
  const records = Number(/Memory, locks \(([\d,]+)\)/.exec(kinds.join())![1]!.replaceAll(",", ""));
  expect(records).toBeGreaterThanOrEqual(told.allocations);
  expect(list.errors).toEqual([]);
  await list.close();
});

test("panning asks for marks when it rests, and never while it moves", async () => {
  const tab = await session.open([trace], `#t=0+2000000`);
  await tab.settle();
  const asked = () => tab.asked.filter((address) => address.includes("api/notes")).length;
  const before = asked();
  const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  await tab.page.mouse.move(box.x + 1000, box.y + 300);
  await tab.page.mouse.down();
  for (let i = 1; i <= 30; ++i) await tab.page.mouse.move(box.x + 1000 - 30 * i, box.y + 300);
  const during = asked();
  await tab.page.mouse.up();
  await tab.settle();
  expect(during - before).toBeLessThanOrEqual(2);
  expect(asked() - during).toBeLessThanOrEqual(2);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a page without a server has them; one of sums alone says that it has none", async () => {
  const file = join(WORK, "notes.html");
  karst("export", trace, "--to", "html", "-o", file);
  const tab = await Tab.open(session.browser, `file://${file}#tab=notes&nq=full`, { offline: true });
  await counted(tab, 8);
  expect(tab.errors).toEqual([]);
  await tab.close();

  karst("export", trace, "--to", "html", "-o", file, "--aggregated");
  const sums = await Tab.open(session.browser, `file://${file}#tab=notes`, { offline: true });
  await until(
    () => sums.page.locator(".note-panel").innerText(),
    (text) => text.includes("no notes"),
    "the words",
  );
  await sums.settle();
  expect(sums.errors).toEqual([]);
  await sums.close();
});

test("a trace without notes says how to have them", async () => {
  const tab = await session.open([TRACE]);
  await tab.settle();
  await tab.press("8");
  await until(
    () => tab.page.locator(".note-panel").innerText(),
    (text) => text.includes('KARST_MESSAGE("cache is full")'),
    "the words",
  );
  expect(tab.asked.filter((address) => address.includes("api/notes"))).toEqual([]);
  expect(tab.errors).toEqual([]);
  await tab.close();
});
