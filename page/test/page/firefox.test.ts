// The page in a second browser: Debian's Firefox, told what to do over WebDriver BiDi. Skipped where it is not there.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { report, Session, TRACE, until, WORK } from "./browser";

const session = new Session();
const { KARST_FIREFOX: firefox = "" } = process.env;

interface Socket {
  on(event: "open" | "error" | "message", listener: (data: unknown) => void): void;
  send(text: string): void;
}
interface Answer {
  id?: number;
  method?: string;
  error?: string;
  message?: string;
  params?: { text?: string; level?: string };
  result?: { contexts?: { context: string }[]; result?: { value?: unknown } };
}

/** Firefox without a window, at an address. */
class Firefox {
  readonly errors: string[] = [];
  private asked = 0;
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private context = "";

  private constructor(
    private readonly socket: Socket,
    private readonly end: () => void,
  ) {
    socket.on("message", (data) => {
      const answer = JSON.parse(String(data)) as Answer;
      if (answer.id !== undefined) this.waiting.get(answer.id)?.(answer);
      else if (answer.params?.level === "error") this.errors.push(answer.params.text ?? "");
    });
  }

  static async open(address: string): Promise<Firefox> {
    const profile = mkdtempSync(join(WORK, "firefox-"));
    const child = spawn(
      firefox,
      ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    const end = () => {
      child.on("exit", () => rmSync(profile, { recursive: true, force: true }));
      child.kill();
    };
    const url = await new Promise<string>((resolve, reject) => {
      let said = "";
      child.on("exit", () => reject(new Error(`Firefox ended: ${said}`)));
      child.stderr.on("data", (data) => {
        said += data;
        const found = /listening on (ws:\S+)/.exec(said)?.[1];
        if (found) resolve(found);
      });
    });
    // Playwright's own copy of a client for web sockets: node 18 has none.
    const { ws } = createRequire(import.meta.url)("playwright-core/lib/utilsBundle") as {
      ws: new (url: string) => Socket;
    };
    const socket = new ws(`${url}/session`);
    await new Promise((resolve, reject) => {
      socket.on("open", resolve);
      socket.on("error", reject);
    });
    const browser = new Firefox(socket, end);
    await browser.ask("session.new", { capabilities: {} });
    await browser.ask("session.subscribe", { events: ["log.entryAdded"] });
    browser.context = (await browser.ask("browsingContext.getTree", {})).result!.contexts![0]!.context;
    await browser.ask("browsingContext.navigate", { context: browser.context, url: address, wait: "complete" });
    return browser;
  }

  private async ask(method: string, params: object): Promise<Answer> {
    const id = ++this.asked;
    const answer = await new Promise<Answer>((resolve) => {
      this.waiting.set(id, resolve);
      this.socket.send(JSON.stringify({ id, method, params }));
    });
    if (answer.error) throw new Error(`${method}: ${answer.message}`);
    return answer;
  }

  /** The value of an expression in the page: text, a number, true or false. */
  async value(expression: string): Promise<unknown> {
    const target = { context: this.context };
    return (await this.ask("script.evaluate", { expression, target, awaitPromise: true })).result?.result?.value;
  }

  close(): void {
    this.end();
  }
}

test("Firefox: timeline, table and a selected call", async (context) => {
  if (firefox === "") return context.skip("there is no firefox-esr");
  const { address } = await session.viewer(TRACE);
  const browser = await Firefox.open(`${address}#tab=functions`);
  try {
    const is = (expression: string, what: string) =>
      until(
        () => browser.value(expression),
        (value) => value === true,
        what,
      );
    await is("window.karstFrames?.complete === true && window.karstFrames.rows > 3", "the timeline");
    const most = report().reduce((a, b) => (a.self_ns > b.self_ns ? a : b));
    const row = `document.querySelector(".grid-body .grid-row")`;
    await is(`${row}?.dataset.function === ${JSON.stringify(most.name)}`, "the function of most self time");
    await browser.value(`${row}.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }))`);
    await is(`document.querySelector("[data-testid=call-name]") !== null`, "its longest call");
    await is(`(document.querySelector("[data-testid=sentence]")?.textContent ?? "") !== ""`, "the sentence");
    expect(browser.errors).toEqual([]);
  } finally {
    browser.close();
  }
}, 120_000); // a new profile: Firefox takes its time where processors are shared
