// Every way out of a function, as the page shows it and as `karst report` and `karst tree` count it.
import { afterEach, describe, expect, test } from "vitest";
import { karst, report, Session, until, type ReportRow, type Tab } from "./browser";
import { build, record } from "./record";

const session = new Session();
let tab: Tab;
afterEach(async () => {
  expect(tab.errors).toEqual([]);
  await tab.close();
});

describe("ways out of functions", () => {
  test.each([
    ["an exception", "ways_out/caught.cc", "unwound_calls", "left by an exception", /\[unwound\]/g],
    ["longjmp", "ways_out/jumps.c", "jumped_calls", "left by longjmp", /\[jumped\]/g],
    ["a tail call", "ways_out/tail_calls.cc", "tail_calls", "ended with a tail call", /\[tail\]/g],
  ] as const)("%s: each call of the function that left most by it says so", async (_, source, column, words, mark) => {
    const name = source.replace(/\W/g, "_");
    const { trace } = record(`${name}.karst`, [], [build(source, name)]);
    const rows = report(trace) as (ReportRow & Record<typeof column, number>)[];
    const all = rows.reduce((sum, row) => sum + row[column], 0);
    expect(all).toBeGreaterThan(0);
    expect(karst("tree", trace, "--marks").match(mark)?.length).toBe(all);
    const most = rows.reduce((a, b) => (b[column] > a[column] ? b : a));
    tab = await session.open([trace]);
    await tab.settle();
    await tab.find(`^${most.name.replace(/[^\w]/g, "\\$&")}$`);
    expect(await tab.page.locator("[data-testid=call-name]").innerText()).toBe(most.name);
    // From the longest to the shortest, through all of its calls.
    const shown = () => tab.page.locator(".call").getAttribute("data-call");
    const seen = new Set<string>();
    let marked = 0;
    for (;;) {
      const call = (await shown())!;
      seen.add(call);
      if ((await tab.page.locator(".facts").innerText()).includes(words)) ++marked;
      if (seen.size === most.calls) break;
      await tab.press("Shift+N");
      await until(shown, (now) => now !== call, "the next shorter call");
    }
    expect(marked).toBe(most[column]);
  });
});
