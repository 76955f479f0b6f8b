// Measures the page in headless Chromium: times to pictures, frames while zooming and panning at 1920x1080, and the
// browser's memory. Prints one line of JSON. For script/bench.
//
//   node test/frames.mjs CHROMIUM KARST view --no-browser --keep FILE
//
//   first_calls_ms     from the start of that command, with a browser that runs, to the first frame with calls in it
//   first_picture_ms   the same, to a timeline of which all that is in view is there: its tracks are read to their ends
//   whole_picture_ms   the same, to one of a trace that is read to its end, so that all else can be asked for
//   ready_ms           of that, until the server could answer
//   frame_*_ms         work of a frame: tiles chosen, rows painted, names drawn, before the browser composes it
//   interval_*_ms      from one frame to the next, as the browser gives them (16.7 at 60 Hz)
//   memory_mb          JavaScript heap and array buffers after all that
import { spawn } from "node:child_process";
import { chromium } from "playwright-core";

const [executablePath, ...command] = process.argv.slice(2);
if (command.length === 0) {
  console.error("usage: node test/frames.mjs CHROMIUM KARST view --no-browser --keep FILE");
  process.exit(2);
}
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--enable-precise-memory-info"] });
const page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
const started = performance.now();
const server = spawn(command[0], command.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((resolve, reject) => {
  let text = "";
  server.stdout.on("data", (data) => (text += data).includes("\n") && resolve(text.split("\n")[0]));
  server.on("exit", (code) => reject(new Error(`${command.join(" ")} ended with ${code}`)));
});
const ready = fetch(`${address}api/progress?wait=1`).then(() => performance.now() - started);
// All of it: a page without a place opens on what it finds.
await page.goto(`${address}#tab=functions`);
const complete = () =>
  page.waitForFunction(() => window.karstFrames?.complete && window.karstFrames.frames > 1, null, { timeout: 120_000 });
const until = async (ready) => {
  await page.waitForFunction(ready, null, { timeout: 120_000 });
  return performance.now() - started;
};
const firstCalls = await until(() => window.karstFrames?.rows > 0);
await complete();
const first = performance.now() - started;
const whole = await until(() => window.karstFrames.whole && window.karstFrames.complete);

const box = await page.locator("[data-testid=timeline]").boundingBox();
await page.mouse.move(box.x + box.width * 0.6, box.y + 200);
await page.evaluate(() => {
  window.karstFrames.milliseconds.length = 0;
  window.intervals = [];
  let last = performance.now();
  const tick = (now) => {
    window.intervals.push(now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
});
// In, across, and out again, in small steps as a wheel makes them; twice, the second time with tiles at hand.
for (let round = 0; round < 2; ++round) {
  for (let i = 0; i < 60; ++i) await page.mouse.wheel(0, -60);
  for (let i = 0; i < 40; ++i) await page.mouse.wheel(80, 0);
  for (let i = 0; i < 60; ++i) await page.mouse.wheel(0, 60);
}
await complete();
const result = await page.evaluate(() => {
  const rank = (values, share) =>
    [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))];
  const work = window.karstFrames.milliseconds;
  const intervals = window.intervals.slice(2);
  return {
    frames: work.length,
    frame_median_ms: rank(work, 0.5),
    frame_p99_ms: rank(work, 0.99),
    interval_median_ms: rank(intervals, 0.5),
    interval_p99_ms: rank(intervals, 0.99),
    memory_mb: performance.memory ? performance.memory.usedJSHeapSize / 1e6 : null,
  };
});
const session = await page.context().newCDPSession(page);
await session.send("HeapProfiler.collectGarbage");
const { usedSize, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
console.log(
  JSON.stringify({
    first_calls_ms: firstCalls,
    first_picture_ms: first,
    whole_picture_ms: whole,
    ready_ms: await ready,
    ...result,
    memory_mb: (usedSize + backingStorageSize) / 1e6,
  }),
);
await browser.close();
server.removeAllListeners("exit");
server.kill();
