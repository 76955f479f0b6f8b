// What leads to the selected call, and what it leads to, in whatever thread: as karst flows says it.
import { beforeAll, expect, test } from "vitest";
import { karst, Session, until, type Tab } from "./browser";
import { build, record } from "./record";

interface Step {
  after_ns: number;
  tid: number;
  call: string;
}
interface Flow {
  flow: string;
  steps: Step[];
}

const session = new Session();
let said = "";
let coroutines = "";

beforeAll(() => {
  ({ trace: said } = record("flows-said.karst", [], [build("flows/said.cc", "flows_said")]));
  ({ trace: coroutines } = record("coroutines.karst", [], [build("flows/coroutines.cc", "flows_coroutines")]));
});

const flowsOf = (trace: string, ...options: string[]) =>
  (JSON.parse(karst("flows", trace, "--json", ...options)) as { flows: Flow[] }).flows;

const heading = (tab: Tab) => tab.page.locator("[data-testid=flow]").allInnerTexts();
const headed = (tab: Tab, text: string) =>
  until(
    () => heading(tab),
    (texts) => texts.some((line) => line.startsWith(text)),
    text,
  );

test("steps of a flow are followed from call to call, back and forth", async () => {
  // One that no other flow shares a call with.
  const { steps } = flowsOf(said, "--id", "7", "--sort", "begin")[0]!;
  const tab = await session.open([said]);
  await tab.settle();
  await tab.find("^store");
  const [first] = await until(
    () => heading(tab),
    (texts) => texts.length > 0,
    "a flow of the selected call",
  );
  const [, name, at, of] = /^(flow \d+): step (\d+) of (\d+), the last one$/.exec(first!)!;
  expect(at).toBe(of);
  expect(Number(of)).toBeGreaterThan(1);
  for (let step = Number(of) - 1; step > 0; --step) {
    await tab.page.locator("[data-testid=flow-before]").first().click();
    await headed(tab, `${name}: step ${step} of ${of}`);
  }
  expect(await tab.page.locator("[data-testid=call-name]").innerText()).toContain("make(");
  await tab.page.locator("[data-testid=flow-after]").first().click();
  await headed(tab, `${name}: step 2 of ${of}`);
  expect(steps.length).toBeGreaterThan(1);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a coroutine's resumption says how long it was suspended", async () => {
  const flows = flowsOf(coroutines);
  const longest = flows[0]!;
  const tab = await session.open([coroutines]);
  await tab.settle();
  // Its longest call is a step of some coroutine of the same function.
  await tab.find("^lazy.*actor");
  const [first] = await until(
    () => heading(tab),
    (texts) => texts.length === 1,
    "the coroutine of the selected call",
  );
  const [, name, at, of] = /^(lazy \[0x[0-9a-f]+\]): resumption (\d+) of (\d+)/.exec(first!)!;
  const flow = flows.find((f) => f.flow === name && f.steps.length === Number(of));
  expect(flow).toBeDefined();
  const texts = await tab.page.locator("[data-testid=flows]").innerText();
  if (Number(at) > 1) expect(texts).toContain("was suspended for");
  if (Number(at) < Number(of)) expect(texts).toContain("suspended for");
  expect(longest.steps.length).toBeGreaterThan(1);
  expect(tab.errors).toEqual([]);
  await tab.close();
});

test("a trace without flows asks for none", async () => {
  const { trace } = record("no-flows.karst", ["--coroutines=none"], [build("flows/coroutines.cc", "flows_coroutines")]);
  const tab = await session.open([trace]);
  await tab.settle();
  await tab.find("^lazy");
  await tab.settle();
  expect(await tab.page.locator("[data-testid=flows]").count()).toBe(0);
  expect(tab.asked.filter((address) => address.includes("api/flows"))).toEqual([]);
  expect(tab.errors).toEqual([]);
  await tab.close();
});
