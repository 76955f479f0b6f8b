// Arguments and returned values of calls on the page: those that `karst calls` lists, in the panel, in the tip, on the
// bars; from a server and from a file.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { drawn, karst, listen, Session, Tab, TRACE, until, WORK } from "./browser";
import { build, record } from "./record";

const session = new Session();
let trace = "";

interface Listed {
  function: string;
  arguments: string;
  returned: string;
  duration_ns: number;
}

beforeAll(() => {
  ({ trace } = record("values.karst", ["--args", ".", "--returns", "."], [build("viewer_values.cc", "values")]));
});

const lines = (tab: Tab, within = ".call-main"): Promise<string[]> =>
  tab.page
    .locator(`${within} [data-testid=values] > div`)
    .evaluateAll((all) => all.map((e) => [...e.children].map((c) => c.textContent).join(": ")));

const shown = (tab: Tab, text: string): Promise<string[]> =>
  until(
    () => lines(tab),
    (all) => all.some((line) => line.includes(text)),
    `values with ${text}`,
  );

/** Where a call of the selected function is in the picture: it is fit to it. */
async function pointAtSelected(tab: Tab): Promise<void> {
  const depth = await tab.page.locator(".chain .call-line").count();
  const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  // The levels of the one thread lie below the ruler.
  for (let y = box.y + 30 + depth * 14; y < box.y + box.height; y += 4) {
    await tab.page.mouse.move(box.x + box.width / 2, y);
    await tab.page.waitForTimeout(30);
    const tip = await tab.page.locator(".tip .tip-name").allInnerTexts();
    if (tip[0]?.includes("open_file")) return;
  }
  throw new Error("the call is not in the picture");
}

async function panelTellsOfCalls(tab: Tab): Promise<void> {
  await tab.settle();
  await tab.find("open_file");
  expect(await shown(tab, "/etc/passwd")).toEqual([
    'path: "/etc/passwd"',
    "mode: kRead",
    "milliseconds: 40",
    "returned: 47",
  ]);
  await tab.find("put_point");
  expect(await shown(tab, "returned x")).toEqual(["count: 1099511627781", "returned x: 5", "returned y: -1"]);
}

test("the panel has what karst calls lists", async () => {
  const listed = JSON.parse(karst("calls", "--format", "json", trace)) as { calls: Listed[] } | Listed[];
  const calls = Array.isArray(listed) ? listed : listed.calls;
  const opened = calls.filter((call) => call.function.includes("open_file"));
  expect(opened.length).toBe(13);
  const longest = opened.reduce((a, b) => (a.duration_ns > b.duration_ns ? a : b));
  const tab = await session.open([trace]);
  await panelTellsOfCalls(tab);
  await tab.find("open_file");
  const all = await shown(tab, "/etc/passwd");
  const given = all.filter((line) => !line.startsWith("returned")).map((line) => line.replace(": ", "="));
  expect(given.join(", ")).toBe(longest.arguments);
  expect(all.at(-1)).toBe(`returned: ${longest.returned}`);
  // A function whose call has none shows nothing in their place.
  await tab.find("quiet");
  await until(
    () => tab.page.locator("[data-testid=call-name]").innerText(),
    (name) => name.includes("quiet"),
    "the other call",
  );
  expect(await lines(tab)).toEqual([]);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a trace without values asks for none and shows none", async () => {
  const tab = await session.open([TRACE]);
  await tab.settle();
  await tab.find("shop::serve");
  await tab.page.waitForSelector("[data-fact=duration]");
  expect(await tab.page.locator("[data-testid=values]").count()).toBe(0);
  expect(tab.asked.filter((address) => address.includes("api/values"))).toEqual([]);
  await tab.close();
});

describe("texts of the program", () => {
  test.each([1440, 480])("are texts, and stay in their place, %i pixels wide", async (width) => {
    const tab = await session.open([trace], undefined, { viewport: { width, height: 900 } });
    await tab.settle();
    await tab.find("hostile");
    expect(await shown(tab, "<img")).toEqual([
      'text: "<img src=x onerror=\\"window.hacked = 1\\">\\x1b[31m\\x07\\n\\u{202e}"',
      'returned: "<script>window.hacked = 2</script>\\u{202e}&amp;\\x9b"',
    ]);
    expect(await tab.page.locator("[data-testid=values] img, [data-testid=values] script").count()).toBe(0);
    expect(await tab.page.evaluate(() => "hacked" in window)).toBe(false);
    // One that is cut is as long as they get.
    await tab.find("wide");
    expect(await shown(tab, "www")).toContain(`text: "${"w".repeat(64)}"...`);
    const wide = await tab.page.evaluate(() => {
      const panel = document.querySelector(".call-main")!;
      return [panel.scrollWidth - panel.clientWidth, document.documentElement.scrollWidth - innerWidth];
    });
    expect(wide.every((more) => more <= 0)).toBe(true);
    expect(tab.errors).toEqual([]);
    await tab.page.screenshot({ path: join(WORK, `values${width}.png`) });
    await tab.close();
  });
});

test("the picture names calls with them, and the tip lists them", async () => {
  const tab = await session.open([trace], undefined, {}, listen);
  await tab.settle();
  await tab.find("open_file");
  await shown(tab, "/etc/passwd");
  await tab.press("f");
  await tab.settle();
  await until(
    async () => (await drawn(tab)).said,
    (said) => said.includes('open_file(path="/etc/passwd", mode=kRead, milliseconds=40) = 47'),
    "a call with its values",
  );
  // Names alone were drawn first: nothing waits for values.
  expect((await drawn(tab)).said).toContain("open_file");
  await pointAtSelected(tab);
  expect(
    await until(
      () => lines(tab, ".tip"),
      (all) => all.length > 0,
      "values in the tip",
    ),
  ).toEqual(['path: "/etc/passwd"', "mode: kRead", "milliseconds: 40", "returned: 47"]);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("the calls of a function by duration tell of what they were given", async () => {
  const tab = await session.open([trace], "#tab=outliers");
  await tab.settle();
  await tab.find("open_file");
  await tab.page.locator("[role=tab]", { hasText: "Outliers" }).click();
  const first = await until(
    () => tab.page.locator("[data-testid=by-duration] .noted").allInnerTexts(),
    (all) => all.length === 13,
    "thirteen calls with values",
  );
  expect(first[0]).toBe('(path="/etc/passwd", mode=kRead, milliseconds=40) = 47');
  await tab.close();
});

test("a page of one file has them", async () => {
  const file = join(WORK, "values.html");
  karst("export", trace, "--to", "html", "-o", file);
  const tab = await Tab.open(session.browser, `${pathToFileURL(file).href}#tab=functions`);
  await panelTellsOfCalls(tab);
  await tab.close();
  // A part that is cut out has those of its calls.
  const part = join(WORK, "values_part.html");
  karst("export", trace, "--to", "html", "-o", part, "--range", "5ms-20s");
  const other = await Tab.open(session.browser, `${pathToFileURL(part).href}#tab=functions`);
  await panelTellsOfCalls(other);
  await other.close();
});
