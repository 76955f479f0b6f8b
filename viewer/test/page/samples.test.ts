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

test("code that is not traced is below the call that went into it", async ({ skip }) => {
  skip(said.includes("nothing was sampled"), said);
  interface Sampled {
    functions: { name: string; samples: number; below: { function: string; samples: number }[] }[];
  }
  const { functions } = JSON.parse(karst("samples", "--json", trace)) as Sampled;
  const most = functions[0]!;
  expect(most.below.find((one) => one.function === "fill_room()")!.samples).toBeGreaterThan(50);
  const tab = await session.open([trace], undefined, { viewport: { width: 1280, height: 900 } });
  await tab.settle();
  await tab.find("fill_room");
  await tab.press("f");
  await tab.settle();
  const box = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
  const tips = new Set<string>();
  const tip = await until(
    async () => {
      for (let y = box.y + 30; y < box.y + 200; y += 6) {
        await tab.page.mouse.move(box.x + box.width / 2, y);
        await tab.page.waitForTimeout(30);
        for (const text of await tab.page.locator(".tip").allInnerTexts()) tips.add(text);
      }
      return [...tips].find((text) => text.startsWith(most.name)) ?? "";
    },
    (text) => text !== "",
    "a tip of what was sampled",
  );
  expect(tip).toMatch(/\d+ samples up to .*, about .* of CPU time/);
  expect(tip).toContain("no traced call");
  expect([...tips].some((text) => text.startsWith("fill_room"))).toBe(true);
});
