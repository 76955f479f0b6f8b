// A page that is opened while its trace is being read. The server has read it long ago; what the page hears of it is held
// back here, so that it can be looked at for as long as it takes.
import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import { drawn, listen, report, Session, TRACE, until } from "./browser";

type Facts = {
  reading: object | null;
  threads: { first: number; last: number; calls: number; depths: number; unread_from: number | null }[];
  functions: { number: number[]; name: string[]; calls: number[] };
};

const session = new Session();

/** Says that only these threads are read, until whole() is called. */
async function held(read: number[]) {
  const { address } = await session.viewer(TRACE);
  const facts = await (await session.viewer(TRACE)).answer<Facts>();
  let parts = 1;
  let release = () => {};
  const whole = new Promise<void>((resolve) => (release = resolve));
  let over = false;
  const wishes: string[] = [];
  const answer = async (route: Route): Promise<void> => {
    const url = new URL(route.request().url());
    const path = url.pathname.replace(/^.*\/api\//, "");
    if (path === "first") wishes.push(url.searchParams.get("threads")!);
    if (over) return route.continue();
    if (path === "progress") {
      if (url.searchParams.get("wait") === "1") await whole;
      const now = over ? { phase: "ready", parts: 0 } : { phase: "rebuilding", parts };
      return route.fulfill({ json: { done: 25, total: 100, error: "", files: ["shop.karst"], ...now } });
    }
    if (path === "trace") {
      const threads = facts.threads.map((thread, i) =>
        read.includes(i) ? thread : { ...thread, calls: 0, depths: 0, unread_from: thread.first },
      );
      return route.fulfill({ json: { ...facts, reading: { threads_read: read.length }, threads } });
    }
    return route.continue();
  };
  return {
    address,
    facts,
    wishes,
    prepare: async (page: Page) => {
      await listen(page);
      await page.context().route("**/api/**", answer);
    },
    readMore(thread: number) {
      read.push(thread);
      ++parts;
    },
    whole() {
      over = true;
      release();
    },
  };
}

test("threads are shown as they are read, the rest says that it is not, and what is about all of it waits", async () => {
  const trace = await held([0]);
  expect(trace.facts.threads.length).toBeGreaterThan(2);
  const tab = await session.open([TRACE], "", {}, trace.prepare);
  const { page } = tab;
  const reading = page.locator("[data-testid=reading]");
  await until(
    () => reading.count().then((n) => (n > 0 ? reading.innerText() : "")),
    (text) => text.includes(`1 of ${trace.facts.threads.length} threads`),
    "how far it is",
  );
  await until(
    () => page.evaluate(() => window.karstFrames?.rows ?? 0),
    (rows) => rows > 0,
    "calls of the thread that is read",
  );
  await until(
    () => drawn(tab),
    ({ said }) => said.includes("not read yet"),
    "words for the others",
  );
  expect(await page.evaluate(() => window.karstFrames?.whole)).toBe(false);
  await until(
    async () => trace.wishes.length,
    (n) => n > 0,
    "a wish for what is in view",
  );
  expect(trace.wishes[0]!.split(",")).toContain("1");
  // A table, and a search, of a part would be wrong.
  await tab.press("2");
  expect(await page.locator(".grid-body .grid-row").count()).toBe(0);
  await tab.press("/");
  await page.keyboard.insertText("serve");
  await page.waitForTimeout(200);
  expect(await page.locator("[role=option]").count()).toBe(0);
  expect(tab.asked.filter((url) => /api\/(functions|search|minimap|flame)/.test(url))).toEqual([]);
  await tab.press("Escape");

  trace.readMore(1);
  await until(
    () => reading.innerText(),
    (text) => text.includes(`2 of ${trace.facts.threads.length} threads`),
    "one thread more",
  );

  trace.whole();
  await until(
    () => page.evaluate(() => window.karstFrames?.whole && window.karstFrames.complete),
    (done) => done === true,
    "the whole",
  );
  expect(await reading.count()).toBe(0);
  const rows = report();
  await tab.press("2");
  await until(
    () => page.locator(".grid-body .grid-row").count(),
    (n) => n >= Math.min(rows.length, 3),
    "the table",
  );
  const name = await page.locator(".grid-body .grid-row").first().getAttribute("data-function");
  const self = await tab.ns(".grid-body .grid-row >> [data-column=self]");
  expect(rows.map((row) => [row.name, row.self_ns])).toContainEqual([name, self]);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a call that was selected while others were read stays selected, and has its panel in the end", async () => {
  const trace = await held([0]);
  const tab = await session.open([TRACE], "", {}, trace.prepare);
  await until(
    () => tab.page.evaluate(() => window.karstFrames?.rows ?? 0),
    (rows) => rows > 0,
    "calls of the thread that is read",
  );
  const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  const said = () => tab.page.locator(".unseen[aria-live]").first().textContent();
  let chosen: string | null = "";
  for (let y = 34; y < 200 && !chosen; y += 9) {
    await tab.page.mouse.click(box.x + box.width / 2, box.y + y);
    await tab.page.waitForTimeout(30);
    chosen = await said();
  }
  expect(chosen).toMatch(/\w+, .*level \d/);
  expect(await tab.page.locator("[data-testid=call-name]").count()).toBe(0); // its facts wait for all
  trace.whole();
  await until(
    () => tab.page.locator("[data-testid=call-name]").count(),
    (n) => n === 1,
    "the call",
  );
  expect(await said()).toBe(chosen);
  const name = await tab.page.locator("[data-testid=call-name]").first().textContent();
  expect(name).toContain(chosen!.split(",")[0]!);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("an address that names a call and a function holds when all is read", async () => {
  const trace = await held([0]);
  const { number, calls } = trace.facts.functions;
  const func = number[calls.findIndex((count) => count > 0)];
  const tab = await session.open([TRACE], `#sel=0.0.0&func=0.${func}&tab=call`, {}, trace.prepare);
  const reading = tab.page.locator("[data-testid=reading]");
  await until(
    () => reading.count(),
    (n) => n === 1,
    "the page",
  );
  await until(
    () => tab.page.evaluate(() => window.karstFrames?.rows ?? 0),
    (rows) => rows > 0,
    "calls",
  );
  expect(await tab.page.locator("[data-testid=call-name]").count()).toBe(0);
  expect(await tab.page.locator("[data-testid=highlighted]").count()).toBe(0);
  expect(tab.page.url()).toContain("sel=0.0.0"); // nobody has written over it
  trace.whole();
  await until(
    () => tab.page.locator("[data-testid=call-name]").count(),
    (n) => n === 1,
    "the call",
  );
  await until(
    () => tab.page.locator("[data-testid=highlighted]").count(),
    (n) => n === 1,
    "the function",
  );
  expect(tab.errors).toEqual([]);
  await tab.close();
});
