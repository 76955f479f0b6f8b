// A page of `karst view` in Chromium, and what karst's commands say of the same trace.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { traceFacts, type TraceFact } from "../../src/backend/answers";
import { rowOf, type Json } from "../../src/backend/rows";

const need = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run this by test/e2e/viewer_test.sh page`);
  return value;
};
export const WORK = need("KARST_VIEWER_WORK");
export const BIN = need("KARST_BIN");
export const SOURCES = need("KARST_SOURCE_ROOT");
export const KARST = join(BIN, "karst");
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
/** As the page: without what tracing took, unless `options` say otherwise. */
export function report(trace = TRACE, ...options: string[]): ReportRow[] {
  const { functions } = JSON.parse(karst("report", trace, "--format", "json", ...options)) as {
    functions: (Omit<ReportRow, "name"> & { function: string })[];
  };
  return functions.map(({ function: name, ...row }) => ({ name, ...row }));
}

/** An address that names something is obeyed, so the page does not open on what it finds. */
export const EVERYTHING = "#tab=functions";

export class Viewer {
  private constructor(
    readonly server: ChildProcess,
    readonly address: string,
  ) {}

  static async start(...files: string[]): Promise<Viewer> {
    const server = spawn(KARST, ["view", "--no-browser", "--keep", ...files], { stdio: ["ignore", "pipe", "inherit"] });
    const address = await new Promise<string>((resolve, reject) => {
      let text = "";
      server.stdout.on("data", (data) => {
        text += data;
        const found = /(http:\S+)\n/.exec(text);
        if (found) resolve(found[1]!);
      });
      server.on("exit", (status) => reject(new Error(`karst view ended with ${status}: ${text}`)));
    });
    return new Viewer(server, address);
  }

  /** What the server says of its trace, once that is read. */
  async facts(): Promise<TraceFact> {
    return rowOf(await this.answer(), traceFacts);
  }

  /** The same as it comes. */
  async answer<T = Json>(): Promise<T> {
    for (;;) {
      const answer = await fetch(`${this.address}api/trace`);
      const facts = answer.status === 200 ? ((await answer.json()) as T & { reading: object | null }) : undefined;
      if (facts && !facts.reading) return facts;
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }

  stop(): void {
    this.server.kill();
  }
}

/** A browser, and a server for each trace that is asked for, for all tests of a file. */
export class Session {
  private started: Browser | undefined;
  private readonly viewers = new Map<string, Promise<Viewer>>();

  constructor() {
    beforeAll(async () => {
      this.started = await chromium.launch({ executablePath: need("KARST_CHROMIUM"), args: ["--no-sandbox"] });
    });
    afterAll(async () => {
      await this.started?.close();
      for (const viewer of this.viewers.values()) (await viewer.catch(() => undefined))?.stop();
    });
  }

  get browser(): Browser {
    return this.started!;
  }

  /** The server of these traces; started when it is asked for first. */
  viewer(...files: string[]): Promise<Viewer> {
    const key = files.join("\n");
    const found = this.viewers.get(key) ?? Viewer.start(...files);
    this.viewers.set(key, found);
    return found;
  }

  /** A page of these traces, at a place of it: all of them and their functions, unless a test is about where it opens. */
  async open(
    files: string[],
    place = EVERYTHING,
    options: BrowserContextOptions = {},
    prepare?: (page: Page) => Promise<void>,
  ): Promise<Tab> {
    const { address } = await this.viewer(...files);
    return await Tab.open(this.browser, `${address}${place}`, options, prepare);
  }
}

/** A page, with everything that went wrong in it and every address it asked for. */
export class Tab {
  readonly errors: string[] = [];
  readonly asked: string[] = [];
  private constructor(readonly page: Page) {}

  /** `prepare` sees the page before it loads. */
  static async open(
    browser: Browser,
    address: string,
    options: BrowserContextOptions = {},
    prepare?: (page: Page) => Promise<void>,
  ): Promise<Tab> {
    const context = await browser.newContext({
      viewport: { width: 1440, height: 900 },
      reducedMotion: "reduce",
      acceptDownloads: true,
      ...options,
    });
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
    await this.page.waitForFunction(() => window.karstFrames?.complete === true && window.karstFrames.settled);
  }

  async press(...keys: string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  /** ns in an attribute of an element. */
  async ns(selector: string, attribute = "data-ns"): Promise<number> {
    return Number(await this.page.locator(selector).first().getAttribute(attribute));
  }

  /** Searches by keyboard and takes the first that is found: its longest call gets selected. */
  async find(text: string): Promise<void> {
    await this.press("/");
    // At once: a pattern that is typed has been a wrong one meanwhile. Enter is for what the whole text finds, however
    // early it comes.
    await this.page.keyboard.insertText(text);
    await this.press("Enter");
    await until(
      () => this.page.locator("[data-testid=call-name]").count(),
      (n) => n === 1,
      "a selected call",
    );
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}

/** What the canvases of a page were told to write, and the patterns that its last picture has. */
export interface Drawn {
  said: string[];
  /** Patterns have numbers, in the order in which they were made. */
  patterns: { pattern: number; x: number; y: number; width: number; height: number }[];
}

/** Notes what a page draws; see drawn(). To be called before it loads. */
export const listen = (page: Page): Promise<void> =>
  page.addInitScript(() => {
    const said = new Set<string>();
    const tiles: string[] = [];
    const kinds = new WeakMap<CanvasPattern, number>();
    let patterns: Drawn["patterns"] = [];
    // eslint-disable-next-line @typescript-eslint/unbound-method -- each is called with a context below
    const { fillText, fillRect, createPattern } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text: string, ...more: [number, number, number?]) {
      said.add(text);
      return fillText.call(this, text, ...more);
    };
    CanvasRenderingContext2D.prototype.createPattern = function (tile: CanvasImageSource, how: string | null) {
      const made = createPattern.call(this, tile, how);
      const picture = (tile as HTMLCanvasElement).toDataURL();
      if (!tiles.includes(picture)) tiles.push(picture);
      if (made) kinds.set(made, tiles.indexOf(picture));
      return made;
    };
    CanvasRenderingContext2D.prototype.fillRect = function (x: number, y: number, width: number, height: number) {
      // A picture begins with the ground of all of it.
      if (typeof this.fillStyle === "string" && x === 0 && y === 0 && width * height > 100_000) patterns = [];
      const pattern = this.fillStyle instanceof CanvasPattern ? kinds.get(this.fillStyle) : undefined;
      if (pattern !== undefined) patterns.push({ pattern, x, y, width, height });
      return fillRect.call(this, x, y, width, height);
    };
    (window as unknown as { drawn: () => Drawn }).drawn = () => ({ said: [...said], patterns });
  });

export const drawn = (tab: Tab): Promise<Drawn> =>
  tab.page.evaluate(() => (window as unknown as { drawn: () => Drawn }).drawn());

export async function until<T>(ask: () => Promise<T>, good: (value: T) => boolean, what: string): Promise<T> {
  const end = Date.now() + 20_000;
  for (;;) {
    const value = await ask();
    if (good(value)) return value;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}; it is ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
}
