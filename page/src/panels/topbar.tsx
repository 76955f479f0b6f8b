// SPDX-License-Identifier: MIT
// The bar above all: what is open, search, and what works on the whole page.
import { showAll } from "../model/actions";
import { attempt } from "../model/attempt";
import { grows, toggleFollowing } from "../model/following";
import { nextTheme } from "../model/keys";
import { plain, visible } from "../model/names";
import { store, useStore } from "../model/store";
import { count, duration } from "../model/time";
import { picture, save } from "../timeline/picture";
import { currentScene } from "../timeline/steps";
import { Icon } from "./icon";
import { Kept, Missing } from "./missing";
import { Popover } from "./popover";
import { SearchBox } from "./search";

function Problems() {
  const traces = useStore((s) => s.traces);
  const problems = traces.flatMap((t) => t.info.problems.map((p) => ({ ...p, file: t.info.name })));
  const cut = traces.some((t) => !t.info.complete && !t.info.growing);
  if (problems.length === 0 && !cut) return null;
  const label = cut ? "Not whole" : problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return (
    <Popover icon="warning" label={label} title="Problems of the trace" warn testid="problems">
      {() => (
        <>
          {cut && <p>The file is cut or damaged. All that could be read is shown.</p>}
          <ul>
            {problems.map((p) => (
              <li>
                {traces.length > 1 && <b>{p.file}: </b>}
                {visible(p.message)}
                {p.count > 1 && ` (${count(p.count)} times)`}
              </li>
            ))}
          </ul>
        </>
      )}
    </Popover>
  );
}

/** The recording goes on: what came since is a step away. */
function Recording() {
  const growing = useStore(grows);
  const grown = useStore((s) => s.grown);
  const following = useStore((s) => s.following);
  if (!growing) return null;
  const traces = useStore((s) => s.traces);
  const part = traces.find(({ from }) => from !== undefined);
  const newest = part ? `: the newest ${duration(part.info.extent - part.from!)}` : "";
  const less = part ? " What was before is not read meanwhile; stop for all of it." : "";
  const title = following ? `Stay with what is shown (l).${less}` : "Show what came since, and what comes (l)";
  return (
    <span class="problems" data-follows>
      <button aria-pressed={following} title={title} onClick={toggleFollowing} data-testid="recording">
        {following
          ? `Following${newest}`
          : part
            ? "Reading all of it"
            : grown
              ? "More was recorded: follow"
              : "Recording"}
      </button>
    </span>
  );
}

/** What the programs say of themselves as a whole. */
function About() {
  const traces = useStore((s) => s.traces);
  const processes = traces.flatMap((t) => t.info.processes.filter(({ appInfo }) => appInfo.length > 0));
  if (processes.length === 0) return null;
  return (
    <Popover icon="help" label="About" title="What the program says of itself" testid="about">
      {() =>
        processes.map(({ name, pid, appInfo }) => (
          <>
            <p>
              <b>{visible(name)}</b> {pid}
            </p>
            <ul>
              {appInfo.map((line) => (
                <li>{visible(line)}</li>
              ))}
            </ul>
          </>
        ))
      }
    </Popover>
  );
}

function Highlighted() {
  const marked = useStore((s) => s.highlight);
  if (!marked) return null;
  const f = store.state.traces[marked.trace]?.info.functions[marked.function];
  return (
    <span class="chip" data-testid="highlighted">
      <span class="name">
        <bdi>{visible(plain(f?.name ?? "?"))}</bdi>
      </span>
      <span class="quiet chip-count">{count(f?.calls ?? 0)} calls</span>
      <button
        class="icon"
        aria-label="End highlighting"
        title="End highlighting (Esc)"
        onClick={() => store.set({ highlight: null })}
      >
        <Icon name="close" />
      </button>
    </span>
  );
}

function savePicture(): void {
  void attempt(async () => {
    const canvas = document.querySelector<HTMLCanvasElement>(".canvas-area canvas");
    const scene = currentScene();
    if (!canvas || !scene) return;
    const name = store.state.traces[0]?.info.name.replace(/\.karst$/, "") ?? "karst";
    save(await picture(scene, canvas), `${name}.png`);
  });
}

export function TopBar() {
  const traces = useStore((s) => s.traces);
  const measuring = useStore((s) => s.measuring);
  const theme = useStore((s) => s.theme);
  const lanes = traces.reduce((n, t) => n + t.info.threads.length, 0);
  const fibers = traces.reduce((n, t) => n + t.info.threads.filter((thread) => thread.fiber).length, 0);
  const threads = lanes - fibers;
  const calls = traces.reduce((n, t) => n + t.info.calls, 0);
  return (
    <header class="topbar">
      <span class="brand" role="img" aria-label="Karst">
        <svg viewBox="0 0 20 20" aria-hidden="true">
          <path d="M1 2h18v2H1zM3 5h4v9l-2 4-2-4zM8.5 5h3v5l-1.5 3-1.5-3zM13 5h4v7l-2 3-2-3z" />
        </svg>
      </span>
      <h1 class="file" title={traces.map((t) => t.info.path).join("\n")}>
        {traces.map((t) => visible(t.info.name)).join("  ↔  ")}
      </h1>
      <span class="quiet file-facts">
        {count(calls)} calls{traces.some((t) => t.info.reading) && " so far"} ·{" "}
        {threads === 1 ? "1 thread" : `${count(threads)} threads`}
        {fibers > 0 && (fibers === 1 ? ", 1 fiber" : `, ${count(fibers)} fibers`)} · {duration(store.total)}
      </span>
      <Recording />
      <About />
      <Problems />
      <Missing />
      <Kept />
      <Highlighted />
      <span class="grow" />
      <SearchBox />
      <div class="tools" role="toolbar" aria-label="Page">
        <button class="icon" aria-label="See everything" title="See everything (0)" onClick={showAll}>
          <Icon name="all" />
        </button>
        <button
          class={`icon${measuring ? " on" : ""}`}
          aria-pressed={measuring}
          aria-label="Measure a range"
          title="Measure a range by dragging (m)"
          onClick={() => store.set({ measuring: !measuring })}
        >
          <Icon name="measure" />
        </button>
        <button
          class="icon"
          aria-label="Save the picture as PNG"
          title="Save the picture as PNG"
          onClick={savePicture}
          data-testid="png"
        >
          <Icon name="image" />
        </button>
        <button
          class="icon"
          aria-label={`Theme: ${theme}`}
          title={`Theme: ${theme === "auto" ? "as the system’s" : theme} (t)`}
          onClick={nextTheme}
        >
          <Icon name="theme" />
        </button>
        <button class="icon" aria-label="Help" title="Keys and signs (?)" onClick={() => store.set({ help: true })}>
          <Icon name="help" />
        </button>
      </div>
    </header>
  );
}
