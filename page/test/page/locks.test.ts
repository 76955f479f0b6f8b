// Locks on the page: their tracks, the line from who waits to who has it, and the way to the holder's call and back.
import { beforeAll, describe, expect, test } from "vitest";
import { drawn, karst, listen, Session, Tab, until } from "./browser";
import { build, record } from "./record";

const session = new Session();
const traces = { all: "", some: "" };

interface Wait {
  tid: number;
  thread: string;
  holder_tid: number;
  held_in: string;
  duration_ns: number;
}

beforeAll(() => {
  const program = build("viewer_locks.cc", "convoy");
  // Now and then a mutex goes from one to the next just as a wait begins, and does not say who has it.
  const recorded = (name: string, system: string) => {
    for (let i = 0; ; ++i) {
      const { trace } = record(name, ["--system", system], [program]);
      if (waits(trace)[0]?.held_in || i === 4) return trace;
    }
  };
  traces.all = recorded("convoy-all.karst", "locks=all,memory");
  traces.some = recorded("convoy.karst", "locks");
});

/** As `karst locks` lists them; the longest wait for the cache first. */
function waits(trace: string): Wait[] {
  const [head, ...lines] = karst("locks", "--by", "wait", "--format", "csv", trace).trim().split("\n");
  const columns = head!.split(",");
  return lines
    .map((line) => Object.fromEntries(line.split(",").map((value, i) => [columns[i]!, value.replaceAll('"', "")])))
    .filter((row) => row.name === "cache")
    .map((row) => ({
      ...{ tid: Number(row.tid), thread: row.thread!, holder_tid: Number(row.holder_tid), held_in: row.held_in! },
      duration_ns: Number(row.duration_ns),
    }))
    .sort((a, b) => b.duration_ns - a.duration_ns);
}

/** The lines that go straight up or down, as the topmost canvas has been told. */
const listenLines = (page: Tab["page"]) =>
  page.addInitScript(() => {
    let from = { x: 0, y: 0 };
    const lines: { x: number; from: number; to: number }[] = [];
    // eslint-disable-next-line @typescript-eslint/unbound-method -- each is called with a context below
    const { moveTo, lineTo, clearRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
      lines.length = 0;
      return clearRect.apply(this, box);
    };
    CanvasRenderingContext2D.prototype.moveTo = function (x, y) {
      from = { x, y };
      return moveTo.call(this, x, y);
    };
    CanvasRenderingContext2D.prototype.lineTo = function (x, y) {
      if (x === from.x && Math.abs(y - from.y) > 20) lines.push({ x, from: from.y, to: y });
      return lineTo.call(this, x, y);
    };
    (window as unknown as { lines: typeof lines }).lines = lines;
  });
const lines = (tab: Tab) =>
  tab.page.evaluate(() => (window as unknown as { lines: { x: number; from: number; to: number }[] }).lines);

const open = (trace: string) =>
  session.open([trace], undefined, { viewport: { width: 1440, height: 1200 } }, async (page) => {
    await listen(page);
    await listenLines(page);
  });

/** Selects the longest wait of all, and has it in view. */
async function selectLongest(tab: Tab): Promise<void> {
  await tab.settle();
  await tab.find("wait for mutex");
  await tab.page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await tab.press("h", "f");
  await tab.settle();
}

const head = (tab: Tab, name: string) => tab.page.locator(".head", { hasText: name });

describe.each(["all", "some"] as const)("locks of a trace of --system locks, %s", (which) => {
  test("a selected wait has a line to the call of who has the lock, and a click goes there", async () => {
    const trace = traces[which];
    const [longest] = waits(trace);
    const tab = await open(trace);
    await selectLongest(tab);
    const panel = tab.page.locator("[data-testid=lock-wait]");
    expect(await panel.innerText()).toContain("Waited for mutex cache, while this had it");
    const cache = waits(trace);
    expect(await panel.locator("[data-testid=lock-sum]").innerText()).toContain(`${cache.length} waits`);

    const holder = panel.locator("[data-testid=holder]");
    const name = longest!.held_in.replace(/\(.*/, "").replace(/.*::/, "");
    expect((await holder.innerText()).replace(/\s/g, "")).toContain(name);
    expect(await holder.innerText()).toContain(String(longest!.holder_tid));
    await until(
      async () => (await drawn(tab)).said,
      (said) => said.some((text) => text.endsWith(`${longest!.holder_tid} has it`)),
      "the line's words",
    );
    // From the track of who waits to that of who has it.
    const tracks = await tab.page.locator(".head").evaluateAll((all) =>
      all.map((e) => ({
        text: e.textContent ?? "",
        top: e.getBoundingClientRect().top,
        bottom: e.getBoundingClientRect().bottom,
      })),
    );
    const top = (await tab.page.locator("[data-testid=timeline]").boundingBox())!.y;
    const within = (tid: number, y: number) => {
      const track = tracks.find(({ text }) => text.includes(String(tid)))!;
      return y + top >= track.top && y + top <= track.bottom;
    };
    const line = (await lines(tab)).find(({ from }) => within(longest!.tid, from));
    expect(line).toBeDefined();
    expect(within(longest!.holder_tid, line!.to)).toBe(true);

    await holder.click();
    await until(
      () => tab.page.locator("[data-testid=call-name]").innerText(),
      (text) => text.includes(name),
      "the holder's call",
    );
    expect(await tab.page.locator("[data-fact=thread]").innerText()).toContain(String(longest!.holder_tid));
    expect(await panel.count()).toBe(0);
    await until(
      () => lines(tab),
      (left) => left.length === 0 || left.every(({ x }) => x !== line!.x),
      "no line any more",
    );
    expect(tab.errors.filter((text) => !text.includes("404"))).toEqual([]);
    await tab.close();
  });

  test("a lock has a track, in which who has it says who waited", async () => {
    const tab = await open(traces[which]);
    await selectLongest(tab);
    expect(await head(tab, "Locks").count()).toBe(1);
    const cache = head(tab, "mutex cache");
    expect(await cache.count()).toBe(1);
    await tab.page.locator("[data-testid=to-holder]").click();
    const held = tab.page.locator("[data-testid=held]");
    await held.waitFor();
    expect(await held.locator(".call-name").innerText()).toContain("mutex cache, held by");
    const sentence = await held.locator("[data-testid=held-sentence]").innerText();
    expect(sentence).toMatch(which === "all" ? /^Held for [\d.]+/ : /until when is not recorded/);
    const waiters = await held.locator("[data-testid=waiter]").count();
    expect(waiters).toBeGreaterThan(0);
    await until(
      () => lines(tab),
      (found) => found.length > 0,
      "lines from those who wait",
    );
    // Back to one of them.
    await held.locator("[data-testid=waiter]").first().click();
    await tab.page.locator("[data-testid=lock-wait]").waitFor();
    // And by the track itself: what is drawn in its first lane.
    const box = (await cache.boundingBox())!;
    const area = (await tab.page.locator("[data-testid=timeline]").boundingBox())!;
    for (let x = 100; x < area.width; x += 40) {
      await tab.page.mouse.click(area.x + x, box.y + 10);
      // It comes with an answer; where nobody has the lock, there is none.
      if (
        await held.waitFor({ timeout: 500 }).then(
          () => true,
          () => false,
        )
      )
        break;
    }
    await held.waitFor();
    // It can be folded.
    await tab.page.getByRole("button", { name: "Fold Locks" }).click();
    expect(await cache.count()).toBe(0);
    expect(tab.errors.filter((text) => !text.includes("404"))).toEqual([]);
    await tab.close();
  });
});

test("the panel of a call has what it took of memory, and what was left", async () => {
  const tab = await open(traces.all);
  await tab.settle();
  await tab.find("server::find");
  const sum = tab.page.locator("[data-testid=memory-sum]");
  await sum.waitFor();
  const call = await tab.page.locator("[data-call]").getAttribute("data-call");
  const [, thread, index] = call!.split(".");
  const viewer = await session.viewer(traces.all);
  const facts = await viewer.facts();
  const begin = await (await fetch(`${viewer.address}api/call?thread=${thread}&index=${index}`)).json();
  // As the command names it, whose times are cut to whole ns.
  const name = `${facts.threads[Number(thread)]!.tid}@${Math.floor(begin.begin)}ns`;
  const { all } = JSON.parse(karst("memory", "--json", "--call", name, traces.all));
  expect(all.allocations).toBe(1);
  expect(await sum.innerText()).toBe(
    `${all.bytes} bytes in 1 allocation; ${all.bytes} bytes in 1 not freed by its end.`,
  );
  const taker = tab.page.locator("[data-testid=taker]");
  expect(await taker.count()).toBe(1);
  expect(await taker.getAttribute("title")).toContain("server::find(int)");
  expect(tab.errors).toEqual([]);
  await tab.close();
});
