// A page of a recording that goes on: it takes in what comes without being opened again, and others stay as they are.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BIN, EVERYTHING, KARST, Session, SOURCES, Tab, until, WORK } from "./browser";

const session = new Session();
const program = join(WORK, "growing");
const started: ChildProcess[] = [];

beforeAll(() => {
  const source = join(SOURCES, "test/e2e/all/counts.c");
  execFileSync(join(BIN, "karst-gcc"), ["-O1", "-g", "-pthread", source, "-o", program]);
});

afterAll(() => started.forEach(stop));

/** The page's process outlives a karst that is killed. */
function stop({ pid, exitCode }: ChildProcess): void {
  if (exitCode !== null || pid === undefined) return;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  for (const one of [...children.split(" "), `${pid}`].filter(Boolean)) process.kill(Number(one), "SIGKILL");
}

/** `karst run --all --view` of a program that calls for a while; its page's address. */
async function record(name: string, rounds: number): Promise<string> {
  const path = join(WORK, "no_browser");
  mkdirSync(path, { recursive: true });
  const trace = join(WORK, `${name}.karst`);
  const run = ["run", "--all", "--view", "--budget", "off", "-o", trace, program, `${rounds}`, "1", "0"];
  const karst = spawn(KARST, run, { env: { ...process.env, PATH: path }, stdio: ["ignore", "ignore", "pipe"] });
  started.push(karst);
  return await new Promise((resolve, reject) => {
    let said = "";
    karst.stderr.on("data", (data) => {
      said += data;
      const found = /(http:\S+)\n/.exec(said);
      if (found) resolve(found[1]!);
    });
    karst.on("exit", () => reject(new Error(said)));
  });
}

/** Calls of leaf, as the table has them. */
const calls = async ({ page }: Tab): Promise<number> => {
  const [row] = await page.locator('.grid-row[data-function="leaf"]').allInnerTexts();
  return Number(/^leaf\s+([\d,]+)/.exec(row ?? "")?.[1]?.replace(/,/g, "") ?? 0);
};

const viewOf = (tab: Tab) => tab.page.evaluate(() => location.hash);
const button = (tab: Tab) => tab.page.locator("[data-testid=recording]");

test("a page follows in place, stays where it is told to, and goes on at a key", async () => {
  const address = await record("growing", 400_000_000);
  // The first call goes on for as long as the program.
  const tab = await Tab.open(session.browser, `${address}${EVERYTHING}&sel=0.0.0`, { reducedMotion: "no-preference" });
  const other = await Tab.open(session.browser, `${address}${EVERYTHING}`);
  await tab.settle();
  await other.settle();
  const seen = await until(
    () => calls(other),
    (n) => n > 0,
    "calls of the other page",
  );
  await tab.page.evaluate(() => ((window as unknown as { marked: boolean }).marked = true));
  await tab.press("l");
  await tab.page.locator("role=tab[name=Functions]").click();
  const filter = tab.page.locator("[data-testid=function-filter]");
  await filter.click();
  await tab.page.keyboard.type("lea");
  const first = await until(
    () => calls(tab),
    (n) => n > 0,
    "calls",
  );
  const later = await until(
    () => calls(tab),
    (n) => n > 0 && n !== first,
    "other calls",
  );
  await until(
    () => calls(tab),
    (n) => n > 0 && n !== later,
    "other calls yet",
  );
  expect(await button(tab).innerText()).toMatch(/^Following/);
  // Nothing was opened again: the same document, the same text in the same field, which has the focus.
  expect(await tab.page.evaluate(() => (window as unknown as { marked?: boolean }).marked)).toBe(true);
  expect(await filter.inputValue()).toBe("lea");
  expect(await filter.evaluate((element) => element === document.activeElement)).toBe(true);
  // The view moves, in frames that are steps.
  const frames = await tab.page.evaluate(() => window.karstFrames!.frames);
  await until(
    () => tab.page.evaluate(() => window.karstFrames!.frames),
    (n) => n > frames + 30,
    "frames of a view that moves",
  );
  // The other page is as it was, but for what its button says.
  expect(await calls(other)).toBe(seen);
  await until(
    () => button(other).innerText(),
    (text) => text.includes("More was recorded"),
    "that there is more",
  );
  await other.close();

  // The call that was selected is the same one still.
  await tab.page.locator("role=tab[name=Call]").click();
  await until(
    () => tab.page.locator("[data-testid=call-name]").innerText(),
    (text) => text.startsWith("main"),
    "the selected call",
  );

  // Whoever looks back stays there; l goes on.
  await tab.page.locator("[data-testid=timeline]").focus();
  await tab.press("a");
  await until(
    () => button(tab).innerText(),
    (text) => !text.startsWith("Following"),
    "the end of following",
  );
  await tab.page.waitForTimeout(1200);
  const still = await viewOf(tab);
  await tab.page.waitForTimeout(1500);
  expect(await viewOf(tab)).toBe(still);
  await tab.press("l");
  await until(
    () => button(tab).innerText(),
    (text) => text.startsWith("Following"),
    "following again",
  );
  // A file that grows has no sources yet, which is an answer of status 404.
  expect(tab.errors.filter((error) => !error.includes("404"))).toEqual([]);
  await tab.close();
  started.splice(0).forEach(stop);
});

test("following ends with the recording, and all of it is there", async () => {
  const address = await record("growing_ends", 6_000_000);
  const tab = await Tab.open(session.browser, `${address}${EVERYTHING}`);
  await tab.settle();
  await tab.press("l");
  await until(
    () => calls(tab),
    (n) => n === 12_000_000,
    "all calls",
  );
  await until(
    () => button(tab).count(),
    (n) => n === 0,
    "the end of following",
  );
  // A file that grows has no sources yet, which is an answer of status 404.
  expect(tab.errors.filter((error) => !error.includes("404"))).toEqual([]);
  await tab.close();
});
