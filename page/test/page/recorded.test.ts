// What a run says of itself beside its calls: where tracing was off, what was kept of slow calls, thread states.
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import type { TraceFact } from "../../src/backend/answers";
import { drawn, karst, listen, Session, SWITCHING, Tab, TRACE, until, WORK } from "./browser";

const session = new Session();
let tab: Tab;
let facts: TraceFact;

beforeAll(async () => {
  facts = await (await session.viewer(SWITCHING)).facts();
});
afterEach(async () => {
  expect(tab.errors).toEqual([]);
  await tab.close();
});

const said = async () => (await drawn(tab)).said;
const open = async (begin: number, span: number, options = {}) => {
  tab = await session.open([SWITCHING], `#t=${begin}+${span}&dock=0`, options, listen);
  await tab.settle();
};

describe("what a run says of itself", () => {
  test.each(["light", "dark"] as const)(
    "where the program switched tracing off is hatched, and said (%s)",
    async (colorScheme) => {
      const { switches } = facts.processes[0]!;
      const off = switches.find((one) => one.all && !one.on)!;
      const on = switches.find((one) => one.on && one.begin >= off.begin)!;
      expect(on.begin - off.begin).toBeGreaterThan(39e6); // It slept for 40 ms.
      const length = on.begin - off.begin;
      await open(off.begin - length * 0.2, length * 1.4, { colorScheme });
      await until(said, (texts) => texts.includes("tracing was switched off"), "that tracing was off");
      await tab.page.screenshot({ path: join(WORK, `switching-${colorScheme}.png`) });
    },
  );

  test("a call that was kept has its number and its kind", async () => {
    const { kept: moments } = JSON.parse(karst("info", SWITCHING, "--format", "json"));
    expect(facts.processes[0]!.moments.length).toBe(moments.length);
    const kept = facts.processes[0]!.moments.find((m) => m.kind === "over" && m.thread >= 0)!;
    const length = kept.end - kept.begin;
    await open(kept.begin - length, 4 * length);
    await until(
      said,
      (texts) => texts.some((text) => text.startsWith(`${kept.number}: over the limit`)),
      "the kept call",
    );
    await tab.page.screenshot({ path: join(WORK, "kept.png") });
  });

  test.each([
    ["a range of it", ["--range", "5ms-20ms"], "it holds what happened there"],
    ["its sums", ["--aggregated"], "it holds one picture and the sums"],
  ])("exported to a page: %s, opened from its file with the network off", async (_, parameters, says) => {
    const file = join(WORK, `part${parameters.length}.html`);
    karst("export", TRACE, "--to", "html", "-o", file, ...parameters);
    tab = await Tab.open(session.browser, `file://${file}`, { offline: true });
    await tab.settle();
    for (const address of tab.asked) expect(address).toMatch(/^(file|data|blob):/);
    await tab.press("2");
    await until(
      () => tab.page.locator(".grid-body .grid-row").count(),
      (n) => n > 2,
      "the table",
    );
    await tab.press("3");
    await until(
      async () => Number(await tab.page.locator("[data-testid=flame-sum]").getAttribute("data-total")),
      (n) => n > 0,
      "a flame graph",
    );
    expect(await tab.page.locator("body").innerText()).toContain(says);
    await tab.page.screenshot({ path: join(WORK, `part${parameters.length}.png`) });
  });

  test("exported to a page: all of it opens on its slowest call, and is not called a part", async () => {
    const file = join(WORK, "whole.html");
    karst("export", TRACE, "--to", "html", "-o", file);
    tab = await Tab.open(session.browser, `file://${file}`, { offline: true });
    const first = tab.page.locator("[data-testid=slow].on");
    await until(
      () => first.count(),
      (n) => n === 1,
      "the slowest call",
    );
    const slow = JSON.parse(karst("slow", TRACE, "--format", "json", "--limit", "1")).slow[0];
    expect(await first.getAttribute("data-function")).toBe(slow.function);
    expect(await tab.page.locator(".exported").count()).toBe(0);
    // A link to it shows the same again.
    await tab.press("0", "3");
    const flame = (now: Tab) =>
      until(
        async () => now.page.url(),
        (url) => /#t=.*&sel=.*&tab=flame/.test(url),
        "an address",
      );
    const link = await flame(tab);
    await tab.close();
    tab = await Tab.open(session.browser, link, { offline: true });
    await tab.settle();
    await tab.page.waitForTimeout(600);
    expect(tab.page.url()).toBe(link);
    expect(await tab.page.locator("[role=tab][aria-selected=true]").innerText()).toBe("Flame graph");
  });
});
