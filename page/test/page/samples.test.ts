// What was sampled below a call, on the page: in the row below it, by its name and its file, and told to be no call.
import { beforeAll, expect, test } from "vitest";
import { karst, Session, until } from "./browser";
import { build, record } from "./record";

const session = new Session();
let trace = "";
let said = "";

beforeAll(() => {
  ({ trace, said } = record("samples.karst", ["--sample", "1000"], [build("viewer_samples.cc", "samples")]));
});

/** What the pointer is told in the rows below a function's longest call, until a tip begins and goes on so. */
async function tipBelow(name: string, begin: string, rest: RegExp): Promise<{ tip: string; tips: Set<string> }> {
  const tab = await session.open([trace], undefined, { viewport: { width: 1280, height: 900 } });
  await tab.settle();
  await tab.find(name);
  await tab.press("f");
  await tab.settle();
  const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  const tips = new Set<string>();
  const tip = await until(
    async () => {
      // At one place there may be a call, or a time in which the thread had no CPU.
      for (const x of [0.5, 0.3, 0.7, 0.4, 0.6])
        for (let y = box.y + 30; y < box.y + 130; y += 6) {
          await tab.page.mouse.move(box.x + box.width * x, y);
          await tab.page.waitForTimeout(30);
          for (const text of await tab.page.locator(".tip").allInnerTexts()) tips.add(text);
        }
      return [...tips].find((text) => text.startsWith(begin) && rest.test(text)) ?? "";
    },
    (text) => text !== "",
    `a tip of ${begin}, ${rest}`,
  );
  return { tip, tips };
}

test("code that is not traced is below the call that went into it", async ({ skip }) => {
  skip(said.includes("nothing was sampled"), said);
  interface Sampled {
    sampled_functions: { function: string; samples: number; in_calls: { function: string; samples: number }[] }[];
  }
  const most = (JSON.parse(karst("samples", "--json", trace)) as Sampled).sampled_functions[0]!;
  expect(most.in_calls.find((one) => one.function === "fill_room()")!.samples).toBeGreaterThan(50);
  const { tip, tips } = await tipBelow("fill_room", most.function, /\d+ samples? up to .*, about .* of CPU time/u);
  expect(tip).toContain("no traced call");
  expect([...tips].some((text) => text.startsWith("fill_room"))).toBe(true);
});

test("code in which a thread waits is below its call for as long as that took", async ({ skip }) => {
  interface Waits {
    sampled_functions: { function: string; total_ns: number; in_calls: { function: string }[] }[];
  }
  const { samples, states } = JSON.parse(karst("info", "--json", trace)) as {
    samples: { waits: number };
    states: unknown;
  };
  skip(samples === null || samples.waits === 0 || states === null, "waits are not sampled here");
  const told = JSON.parse(karst("samples", "--json", "--by", "blocked", trace)) as Waits;
  const waited = told.sampled_functions.find((one) => one.in_calls.some((call) => call.function === "wait_a_while()"))!;
  const { tip } = await tipBelow("wait_a_while", waited.function, /waited for \d+\.\d*\sms/u);
  expect(tip).toContain("no traced call");
});
