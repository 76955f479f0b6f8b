// A page of `karst view` in Chromium, and what karst's commands say of the same trace.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

const need = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run this by test/e2e/viewer_test.sh page`);
  return value;
};
export const WORK = need("KARST_VIEWER_WORK");
export const KARST = join(need("KARST_BIN"), "karst");
export const TRACE = join(WORK, "shop.karst");
/** Of viewer_switching.cc: tracing is off for a while, and slow calls are kept. */
export const SWITCHING = join(WORK, "switching.karst");

export function karst(...parameters: string[]): string {
  return execFileSync(KARST, parameters, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
}

export interface ReportRow {
  name: string;
  file: string;
  line: number;
  calls: number;
  open_calls: number;
  total_ns: number;
  self_ns: number;
  min_ns: number;
  p50_ns: number;
  p99_ns: number;
  max_ns: number;
}
export function report(trace = TRACE): ReportRow[] {
  return JSON.parse(karst("report", trace, "--format", "json")).functions;
}

export async function launch(): Promise<Browser> {
  return await chromium.launch({ executablePath: need("KARST_CHROMIUM"), args: ["--no-sandbox"] });
}

export class Viewer {
  private constructor(
    readonly server: ChildProcess,
    readonly address: string,
  ) {}

  static async start(...files: string[]): Promise<Viewer> {
    const server = spawn(KARST, ["view", "--no-browser", "--keep", ...files], { stdio: ["ignore", "pipe", "inherit"] });
    const address = await new Promise<string>((resolve, reject) => {
      let text = "";
      server.stdout!.on("data", (data) => {
        text += data;
        const found = /(http:\S+)\n/.exec(text);
        if (found) resolve(found[1]!);
      });
      server.on("exit", (status) => reject(new Error(`karst view ended with ${status}: ${text}`)));
    });
    return new Viewer(server, address);
  }

  stop(): void {
    this.server.kill();
  }
}

/** A page, with everything that went wrong in it and every address it asked for. */
export class Tab {
  readonly errors: string[] = [];
  readonly asked: string[] = [];
  private constructor(readonly page: Page) {}

  /** `prepare` sees the page before it loads. */
  static async open(browser: Browser, address: string, options: BrowserContextOptions = {}, prepare?: (page: Page) => Promise<void>): Promise<Tab> {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", acceptDownloads: true, ...options });
    const tab = new Tab(await context.newPage());
    tab.page.on("pageerror", (error) => tab.errors.push(String(error)));
    tab.page.on("console", (message) => message.type() === "error" && tab.errors.push(message.text()));
    tab.page.on("request", (request) => tab.asked.push(request.url()));
    await prepare?.(tab.page);
    await tab.page.goto(address);
    return tab;
  }

  /** Waits until the timeline has all that it needs. */
  async settle(): Promise<void> {
    await this.page.waitForSelector("[data-testid=timeline]");
    await this.page.waitForTimeout(60);
    await this.page.waitForFunction(() => window.karstFrames?.complete === true);
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** ns in an element's data-ns. */
  async ns(selector: string): Promise<number> {
    return Number(await this.page.locator(selector).first().getAttribute("data-ns"));
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}

export async function until<T>(ask: () => Promise<T>, good: (value: T) => boolean, what: string): Promise<T> {
  const end = Date.now() + 20_000;
  for (;;) {
    const value = await ask();
    if (good(value)) return value;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}; it is ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
}
