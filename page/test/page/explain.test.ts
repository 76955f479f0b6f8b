// Explanations on the page: they say what `karst explain` says, and lead to the calls they are about.
import { beforeAll, expect, test } from "vitest";
import { karst, Session, until, type Tab } from "./browser";
import { build, record } from "./record";

interface Answer {
  headline: string;
  call: string;
  duration_ns: number;
  causes: { kind: string; path: { function: string }[]; place: string; what: string; excess_ns: number }[];
}

const session = new Session();
let trace = "";
let said: Answer;

beforeAll(() => {
  const server = build("../../examples/server/server.cc", "server");
  ({ trace } = record("server-explained.karst", [], [server, "3000"]));
  said = JSON.parse(karst("explain", "--json", trace));
});

const selected = ({ page }: Tab) => page.evaluate(() => /sel=([\d.]+)/.exec(location.hash)?.[1] ?? "");
/** The first line of the list of slow calls is the call that the command explains. */
async function openExplained(key: boolean): Promise<Tab> {
  const tab = await session.open([trace], "");
  await until(
    () => tab.page.locator("[data-testid=slow].on").count(),
    (n) => n === 1,
    "a selected call",
  );
  await tab.press("1");
  await tab.page.waitForSelector("[data-testid=call-name]");
  if (key) await tab.press("e");
  else await tab.page.getByRole("button", { name: "Explain" }).click();
  await tab.page.waitForSelector("[data-testid=headline]");
  return tab;
}

test("the first view names the server's slow request first, and has selected it", async () => {
  const tab = await session.open([trace], "");
  const first = tab.page.locator("[data-testid=slow]").first();
  await until(
    () => first.getAttribute("class"),
    (words) => /\bon\b/.test(words ?? ""),
    "the first slow call selected",
  );
  expect((await first.innerText()).replace(/\s+/g, "")).toMatch(/^Server::serve\(int\)/);
  await tab.close();
});

test("the button tells what the command tells: the sentence, the causes, their shares", async () => {
  const tab = await openExplained(false);
  expect(await tab.page.locator("[data-testid=headline]").innerText()).toBe(said.headline);
  const causes = tab.page.locator("[data-testid=cause]");
  expect(await causes.count()).toBe(said.causes.length);
  for (const [i, cause] of said.causes.entries()) {
    const line = causes.nth(i);
    expect(await line.getAttribute("data-kind")).toBe(cause.kind);
    expect(Number(await line.getAttribute("data-ns"))).toBe(cause.excess_ns);
    expect((await line.innerText()).replace(/\s+/g, " ")).toContain(`${cause.place}: ${cause.what}`);
  }
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a cause is framed when it has the focus; Enter selects its call, and the explanation stays", async () => {
  const tab = await openExplained(true);
  const explained = await tab.page.locator("[data-explained]").getAttribute("data-explained");
  const at = said.causes.findIndex((cause) => cause.path.length > 0 && cause.kind !== "missing");
  expect(at).toBeGreaterThanOrEqual(0);
  const cause = tab.page.locator("[data-testid=cause]").nth(at);
  const before = await tab.page.locator(".canvas-area canvas").last().screenshot();
  await cause.focus();
  await tab.page.waitForTimeout(100);
  expect((await tab.page.locator(".canvas-area canvas").last().screenshot()).equals(before)).toBe(false);
  await tab.press("Enter");
  const call = await until(
    () => selected(tab),
    (now) => now !== "" && now !== explained,
    "the cause's call",
  );
  const name = await until(
    () => tab.page.locator("[data-testid=call-name]").innerText(),
    (text) => text.includes(said.causes[at]!.place.split(" > ").at(-1)!),
    "its name",
  );
  expect(name).not.toBe("");
  expect(await tab.page.locator("[data-explained]").getAttribute("data-explained")).toBe(explained);
  // The address has both, and leads back.
  const again = await session.open([trace], await tab.page.evaluate(() => location.hash));
  await again.page.waitForSelector("[data-testid=headline]");
  expect(await selected(again)).toBe(call);
  await again.page.getByRole("button", { name: "To the call" }).click();
  await until(
    () => selected(again),
    (now) => now === explained,
    "the explained call",
  );
  await again.page.locator("[data-testid=timeline]").focus();
  await again.press("e");
  await until(
    () => again.page.locator("[data-explained]").count(),
    (n) => n === 0,
    "its end",
  );
  expect([...tab.errors, ...again.errors]).toEqual([]);
  await tab.close();
  await again.close();
});

test("nothing to compare with, and nothing that stands out, are said plainly", async () => {
  const tab = await session.open([trace]);
  await tab.settle();
  await tab.press("1"); // the panel of calls
  await tab.find("^main$");
  await tab.page.getByRole("button", { name: "Explain" }).click();
  const alone = await until(
    () => tab.page.locator("[data-testid=headline]").innerText(),
    (text) => text !== "",
    "an answer",
  );
  expect(alone).toContain("it is the only complete call");
  expect(await tab.page.locator("[data-testid=cause]").count()).toBe(0);
  await tab.close();
});
