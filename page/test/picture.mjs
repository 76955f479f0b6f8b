// Takes README's pictures: `karst view` of a LevelDB trace, around its slowest write, light and dark. Run by script/picture.
//   node test/picture.mjs ADDRESS DIR [CHROMIUM]
import { join } from "node:path";
import { chromium } from "playwright-core";

const [address, directory, executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const [colorScheme, name] of [
  ["light", "viewer.png"],
  ["dark", "viewer-dark.png"],
]) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme, reducedMotion: "reduce" });
  await page.goto(`${address}#tab=functions`);
  const rest = async () => {
    await page.waitForSelector("[data-testid=timeline]");
    await page.waitForTimeout(300);
    await page.waitForFunction(() => window.karstFrames?.complete);
  };
  await rest();
  await page.keyboard.press("/");
  await page.keyboard.type("DBImpl::MakeRoomForWrite");
  await page.waitForSelector("[role=option]");
  await page.keyboard.press("Enter");
  await page.waitForSelector("[data-testid=call-name]");
  await rest();
  // Its calls were found; now the picture is about all of them: no highlight, and some of what was before and after.
  await page.keyboard.press("h");
  await page.keyboard.press("f");
  for (let i = 0; i < 3; ++i) await page.keyboard.press("s");
  // The thread that they wait for stays in sight above them.
  await page.locator('[aria-label="Filter threads by name or id"]').fill("compaction");
  await page.locator('[aria-label="Pin compaction"]').click();
  await page.locator('[aria-label="Filter threads by name or id"]').fill("writer");
  await page.locator("#search").fill("");
  await page.evaluate(() => document.activeElement?.blur());
  // The selected call's track to the top of those that scroll.
  const thread = await page.locator("[data-fact=thread]").innerText();
  await page.mouse.move(100, 500);
  for (let i = 0; i < 400; ++i) {
    const tracks = await page.locator(".heads-clip:not(.pinned) .head .title").allInnerTexts();
    if (thread.startsWith(tracks[0] ?? "")) break;
    await page.mouse.wheel(0, 3);
    await page.waitForTimeout(20);
  }
  await rest();
  await page.screenshot({ path: join(directory, name) });
  await page.close();
}
await browser.close();
