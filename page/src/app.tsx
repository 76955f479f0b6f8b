// SPDX-License-Identifier: MIT
// The page: loads the trace or traces, then shows them; says what went wrong when they cannot be shown.
import { useCallback, useEffect, useState } from "preact/hooks";
import { hold, Network, prepareTiles, stayAlive, wasLetGo, whenLetGo, whileReading } from "./backend/network";
import { Questions } from "./backend/questions";
import type { Backend, Progress } from "./backend/types/backend";
import { onKey } from "./model/keys";
import { onCopy } from "./model/copying";
import { completeSelection as completeSelectionOf, whenMoved } from "./model/actions";
import { attempt } from "./model/attempt";
import type { Theme } from "./model/colour";
import {
  follow,
  follows,
  goOnFollowing,
  grows,
  hearOfGrowth,
  letHandsStopIt,
  stopFollowing,
  takeInWhatIsThere,
} from "./model/following";
import { keptTarget } from "./model/frames";
import { START, store, useStore, type LoadedTrace, type State } from "./model/store";
import { plain, threadName } from "./model/names";
import { openOnFinding, watchHands } from "./model/opening";
import { count, duration, percent } from "./model/time";
import { firstTab, fromHash, toHash } from "./model/url";
import { clampView, wholeView, type View } from "./model/view";
import { CallMenu } from "./panels/call_menu";
import { Dock } from "./panels/dock";
import { Help } from "./panels/help";
import { Minimap } from "./panels/minimap";
import { OpenFiles, useDrop } from "./panels/open";
import { TopBar } from "./panels/topbar";
import { currentScene } from "./timeline/steps";
import { Timeline } from "./timeline/timeline";

function useTheme(): Theme {
  const chosen = useStore((s) => s.theme);
  const [dark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);
  const theme: Theme = chosen === "auto" ? (dark ? "dark" : "light") : chosen;
  document.documentElement.dataset.theme = theme;
  return theme;
}

function Notice() {
  const notice = useStore((s) => s.notice);
  useEffect(() => {
    if (notice === "") return;
    const timer = setTimeout(() => store.set({ notice: "" }), 6000);
    return () => clearTimeout(timer);
  }, [notice]);
  return (
    <div class={`notice${notice ? " on" : ""}`} role="status" aria-live="polite">
      {notice}
    </div>
  );
}

/** Says to those who cannot see it what was selected. */
function Announcer() {
  const span = useStore((s) => s.selectedSpan);
  const { selected, traces } = store.state;
  const info = selected ? traces[selected.trace]?.info : undefined;
  return (
    <div class="unseen" aria-live="polite">
      {span &&
        selected &&
        info &&
        `${plain(info.functions[span.function]?.name ?? "")}, ${duration(span.end - span.begin)}, ` +
          `level ${span.depth + 1} of ${threadName(info, selected.thread)}`}
    </div>
  );
}

function Loading({ now }: { now: Progress | undefined }) {
  const share = now && now.total > 0 ? now.done / now.total : 0;
  return (
    <main class="loading">
      <div class="loading-box" role="status" aria-live="polite">
        <h1>{now?.files.join(" and ") || "Karst"}</h1>
        <progress max={1} value={now?.phase === "rebuilding" ? share : undefined} aria-label="Reading the trace" />
        <p>
          {now?.phase === "rebuilding"
            ? `Rebuilding calls: ${count(now.done)} of ${count(now.total)} events, ${percent(share)}`
            : "Opening the trace…"}
        </p>
      </div>
    </main>
  );
}

function Failure({ message }: { message: string }) {
  return (
    <main class="loading">
      <div class="loading-box failed" role="alert">
        <h1>This trace cannot be shown</h1>
        <p>{message}</p>
      </div>
    </main>
  );
}

/** Shows what there is of the trace, until all is; the event stream tells of the progress meanwhile. */
async function openServer(): Promise<void> {
  prepareTiles();
  for (;;) {
    try {
      return await openGeneration();
    } catch (error) {
      // Other pages had it read again, before the server heard that this one has it: then there is a newer one.
      if (!wasLetGo(error) || store.state.traces.length > 0) throw error;
    }
  }
}

async function openGeneration(): Promise<void> {
  let first: Questions | undefined;
  await whileReading(async (generation) => {
    store.set({ generation });
    first ??= new Questions(new Network(0, generation));
    // It may have been read to its end a moment ago: then there is nothing more to come.
    if (store.state.traces.length > 0 && !store.state.traces[0]!.info.reading) return;
    const info = await first.trace();
    const loaded: LoadedTrace[] = [{ number: 0, backend: first, info }];
    if (info.traces > 1) {
      const second = new Questions(new Network(1, generation));
      loaded.push({ number: 1, backend: second, info: await second.trace() });
    }
    show(loaded);
  });
}

/** Traces that are all there. */
async function showAll(backends: readonly Backend[]): Promise<void> {
  show(await Promise.all(backends.map(async (backend, number) => ({ number, backend, info: await backend.trace() }))));
}

const textOf = (id: string) => document.getElementById(id)?.textContent ?? "";

/** Whether the page can open files: it has the engine, and nothing else to show. */
const opensFiles = () => textOf("karst-engine") !== "" && textOf("karst-embedded") === "";

/** What works without a server; the server's page never loads it. */
const carried = () => import("./backend/open");

/** The first time as the address says; later there is more of the same. */
function show(loaded: LoadedTrace[]): void {
  const { info } = loaded[0]!;
  if (store.state.traces.length > 0) showMore(loaded);
  else {
    document.title = `${loaded.map((t) => t.info.name).join(" ↔ ")} · Karst`;
    const change = startState(loaded);
    // What may be of a thread that is not read yet waits until all is.
    store.set(info.reading ? { ...change, selected: null, explained: null, baseline: null, highlight: null } : change);
  }
  if (info.reading) return;
  if (grows()) watchGrowth();
  const { fresh } = opened;
  delete opened.fresh;
  // Once: a server that reads again tells the same trace.
  // Two traces are there to be compared: what took long in one of them is not the first thing to see.
  const alone = loaded.length === 1 || opened.kept !== undefined;
  if (alone && fresh === store.state.view && !store.state.selected)
    void attempt(() => openOnFinding(fresh, opened.kept));
  else void attempt(completeSelection);
}

/** Once: of a recording that goes on. */
function watchGrowth(): void {
  goOnFollowing();
  letHandsStopIt();
  whenMoved(stopFollowing);
  if (follows()) follow();
}

/** How the page was opened: what is seen as long as nobody has chosen a view; which moment the address names. */
const opened: { fresh?: View; kept?: number } = {};

function showMore(loaded: LoadedTrace[]): void {
  const { view, scroll } = store.state;
  const { info } = loaded[0]!;
  const whole = wholeView(store.total);
  const change: Change = { traces: loaded };
  if (store.state.tab === firstTab(store.state.traces)) change.tab = firstTab(loaded);
  if (!info.reading) {
    const { selected = null, explained = null, baseline = null, highlight = null } = fromAddress(loaded);
    Object.assign(change, store.state.selected ? {} : { selected }, { explained, baseline, highlight });
  }
  // Tracks above what is looked at grow: that stays where it is.
  const scene = currentScene();
  const top = scroll > 0 ? scene?.layout().scrolled.find((track) => track.y + track.height > scroll) : undefined;
  store.set(change);
  const now = top && scene?.layout().scrolled.find((track) => track.key === top.key);
  const all = view.begin === whole.begin && view.span === whole.span;
  const later = all ? wholeView(store.total) : clampView(view, store.total);
  if (opened.fresh === view) opened.fresh = later;
  store.set({ scroll: top && now ? scroll + now.y - top.y : scroll, view: later });
}

type Change = { -readonly [K in keyof State]?: State[K] };

/** What the address says, as far as these traces have it. */
function fromAddress(traces: readonly LoadedTrace[]): Change {
  const said: Change = { tab: firstTab(traces), ...fromHash(location.hash, { ...START, traces }) };
  const exists = (at: { trace: number; thread: number } | null | undefined) =>
    at !== undefined && at !== null && traces[at.trace]?.info.threads[at.thread] !== undefined;
  if (!exists(said.selected)) delete said.selected;
  if (!exists(said.baseline)) delete said.baseline;
  if (!exists(said.explained)) delete said.explained;
  if (said.frame && traces[said.frame.trace] === undefined) delete said.frame;
  if (said.highlight && !traces[said.highlight.trace]?.info.functions[said.highlight.function]) delete said.highlight;
  return said;
}

function startState(traces: LoadedTrace[]): Partial<State> {
  store.set({ traces });
  const said = fromAddress(traces);
  const range = traces[0]!.info.range;
  const total = store.total;
  const whole = range ? { begin: range.begin, span: Math.max(range.end - range.begin, 20) } : wholeView(total);
  said.view = said.view ? clampView(said.view, total) : whole;
  try {
    const theme = localStorage.getItem("karst-theme");
    if (theme === "light" || theme === "dark") said.theme = theme;
  } catch {
    // Storage may be forbidden.
  }
  const goesOn = follows() && grows();
  said.frameTarget = keptTarget();
  const kept = /^#kept=(\d+)$/.exec(location.hash);
  if (kept) opened.kept = Number(kept[1]);
  if (!goesOn && (kept || location.hash.length < 2)) opened.fresh = said.view;
  watchHands();
  said.dockHeight = Math.round(Math.min(360, Math.max(180, window.innerHeight * 0.36)));
  return said;
}

/** What the browser's Back undoes: selections and the like, not each move of the view. */
const stepOf = ({ selected, explained, highlight, tab, range, frame }: State) =>
  JSON.stringify([selected, explained, highlight, tab, range, frame]);

/** Writes the address when the view has come to rest: browsers allow some hundred changes in half a minute. */
function keepAddress(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let step: string | undefined;
  const write = () => {
    timer = undefined;
    // While a file is being opened nothing is seen: an address would say where the page has to open.
    if (store.state.traces.length === 0) return;
    const hash = `#${toHash(store.state)}`;
    const now = stepOf(store.state);
    if (hash !== location.hash) {
      // The first step is the page as it opened.
      if (step === undefined || step === now) history.replaceState(null, "", hash);
      else history.pushState(null, "", hash);
    }
    step = now;
  };
  const stop = store.subscribe(() => {
    if (timer !== undefined) clearTimeout(timer);
    timer = setTimeout(write, 250);
  });
  const changed = () => {
    if (location.hash === `#${toHash(store.state)}`) return;
    // What it does not name is as on a fresh page.
    const { selected, explained, highlight, baseline, range, tab, scope, inverted, flameBy, filter, sort, ascending } =
      START;
    const said = {
      ...{ selected, explained, highlight, baseline, range, tab, scope, inverted, flameBy, filter, sort, ascending },
      ...{ selectedSpan: null, waking: null, flows: null, frame: null, frameSpan: null },
      ...fromAddress(store.state.traces),
    };
    if (said.view) said.view = clampView(said.view, store.total);
    store.set(said);
    step = stepOf(store.state);
    void attempt(completeSelection);
  };
  addEventListener("hashchange", changed);
  return () => {
    stop();
    removeEventListener("hashchange", changed);
  };
}

/** A selection from the address has no times yet: the timeline needs them to draw it. */
async function completeSelection(): Promise<void> {
  const { selected } = store.state;
  if (selected) await completeSelectionOf(selected);
}

export function App() {
  const theme = useTheme();
  const [now, setNow] = useState<Progress | undefined>();
  const onProgress = (progress: Progress) => {
    setNow(progress);
    store.set({ readShare: progress.total > 0 ? progress.done / progress.total : 0 });
    hearOfGrowth(progress.grown === true, progress.generation ?? 0);
  };
  const [failure, setFailure] = useState("");
  const [lost, setLost] = useState<string | null>(null); // "": the server here does not answer
  const traces = useStore((s) => s.traces);
  const help = useStore((s) => s.help);
  const [opening, setOpening] = useState(false);
  const [takesFiles] = useState(opensFiles);
  const open = useCallback((files: File[]) => {
    // The address is of what was shown before; else of a link, that somebody followed and opens the file for.
    if (store.state.traces.length > 0) history.replaceState(null, "", location.pathname);
    store.set({ ...START, traces: [] });
    setNow(undefined);
    setFailure("");
    setOpening(true);
    carried()
      .then(({ openFiles }) => openFiles(files, onProgress))
      .then(showAll)
      .catch((error: Error) => setFailure(error.message))
      .finally(() => setOpening(false));
  }, []);
  const over = useDrop(takesFiles && !opening, open);
  useEffect(() => {
    const embedded = textOf("karst-embedded");
    let stop = () => {};
    whenLetGo(takeInWhatIsThere);
    if (!embedded && !takesFiles)
      stayAlive(onProgress, setLost, () => {
        setLost(null);
        if (store.state.generation > 0) hold(store.state.generation);
      });
    const opened = embedded
      ? carried()
          .then(({ openEmbedded }) => openEmbedded(embedded, onProgress))
          .then(showAll)
      : takesFiles
        ? Promise.resolve()
        : openServer();
    opened.then(
      () => {
        stop = keepAddress();
      },
      (error: Error) => setFailure(error.message),
    );
    addEventListener("keydown", onKey);
    addEventListener("copy", onCopy);
    return () => {
      stop();
      removeEventListener("copy", onCopy);
      removeEventListener("keydown", onKey);
    };
  }, []);
  if (takesFiles && !opening && traces.length === 0) return <OpenFiles failure={failure} over={over} open={open} />;
  if (failure) return <Failure message={failure} />;
  if (traces.length === 0) return <Loading now={now} />;
  const { name, range, aggregated } = traces[0]!.info;
  return (
    <>
      <TopBar />
      <main class="page">
        {lost === "" && (
          <div class="lost" role="alert">
            The karst process that serves this page does not answer; what is on screen stays. Start{" "}
            <code>karst view</code> again for more.
          </div>
        )}
        {lost && (
          <div class="lost" role="alert">
            {lost}
          </div>
        )}
        {(range || aggregated) && (
          <div class="exported">
            {range ? `An exported part of ${name}` : name}
            {aggregated
              ? ": it holds one picture and the sums. Export a shorter range to have each call."
              : ": it holds what happened there, and nothing else."}
          </div>
        )}
        <Minimap theme={theme} />
        <Timeline theme={theme} />
        <Dock />
      </main>
      <CallMenu />
      <Notice />
      <Announcer />
      {help && <Help />}
    </>
  );
}
