// SPDX-License-Identifier: MIT
// The tracks' names, with what can be done to a track. Only those on screen are in the page.
import { useEffect } from "preact/hooks";
import { togglePinned, toggleFolded, wantRanks } from "../model/actions";
import { toggleAllFolded } from "../model/folding";
import { visible } from "../model/names";
import { store, useStore } from "../model/store";
import { count, duration } from "../model/time";
import { ORDERS, threadKey, type Order, type Track } from "../model/tracks";
import { Icon } from "../panels/icon";
import { RULER, type Placed, type Scene } from "./scene";

function facts({ track }: Placed): string {
  const info = store.state.traces[track.trace]!.info;
  const thread = info.threads[track.thread];
  if (!thread) return "";
  const parts = [
    `${thread.fiber ? "fiber" : "thread"} ${thread.tid}`,
    thread.unreadFrom === null ? `${count(thread.calls)} calls` : "still being read",
    `${duration(thread.last - thread.first)}`,
  ];
  if (thread.overwrittenEvents > 0) parts.push(`${count(thread.overwrittenEvents / 2)} calls overwritten`);
  if (thread.lostEvents > 0) parts.push(`${count(thread.lostEvents)} events lost`);
  return parts.join(" · ");
}

function Pin({ track }: { track: Track }) {
  return (
    <button
      class={`icon pin${track.pinned ? " on" : ""}`}
      aria-pressed={track.pinned}
      aria-label={`Pin ${track.title}`}
      title={track.pinned ? "Unpin" : "Pin: stays in place while the others scroll"}
      onClick={() => togglePinned(track.key)}
    >
      <Icon name="pin" />
    </button>
  );
}

function Head({ place }: { place: Placed }) {
  const { track, top } = place;
  if (!track.info)
    return (
      <div class="head process" style={{ top: `${top}px`, height: `${track.height}px` }} role="listitem">
        <button
          class="icon"
          aria-expanded={!track.folded}
          aria-label={`${track.folded ? "Unfold" : "Fold"} ${track.kind === "process" ? "process " : ""}${track.title}`}
          onClick={() => toggleFolded(track.key)}
        >
          <Icon name={track.folded ? "right" : "down"} />
        </button>
        <span class="title">{visible(track.title)}</span>
        <span class="sub">{track.subtitle}</span>
      </div>
    );
  if (track.thread < 0)
    return (
      <div
        class="head"
        style={{ top: `${top}px`, height: `${track.height}px` }}
        role="listitem"
        {...(track.subtitle ? { title: `${track.title}\n${track.subtitle}` } : {})}
      >
        <span class="title">{visible(track.title)}</span>
        {track.subtitle && <span class="sub">{track.subtitle}</span>}
        <Pin track={track} />
      </div>
    );
  const line = facts(place);
  const missing = track.folded ? "" : missingOf(place);
  // Of a track that is scrolled half away the name stays in sight.
  const hidden = track.folded ? 0 : Math.max(0, Math.min(-top, track.height - 36));
  return (
    <div
      class={`head${track.folded ? " folded" : ""}`}
      style={{ top: `${top + hidden}px`, height: `${track.height - hidden}px` }}
      role="listitem"
      title={`${track.title}\n${line}`}
    >
      <button
        class="icon"
        aria-expanded={!track.folded}
        aria-label={`${track.folded ? "Unfold" : "Fold"} ${track.title}`}
        onClick={() => toggleFolded(track.key)}
      >
        <Icon name={track.folded ? "right" : "down"} />
      </button>
      <span class="title">{visible(track.title)}</span>
      <span class="sub">
        {track.subtitle}
        {missing && <span class="mark"> {missing}</span>}
      </span>
      <Pin track={track} />
    </div>
  );
}

/** What of a thread is not there, if anything. */
function missingOf({ track }: Placed): string {
  const thread = store.state.traces[track.trace]!.info.threads[track.thread];
  if (!thread) return "";
  if (thread.lostEvents > 0) return `${count(thread.lostEvents)} events lost`;
  return thread.overwrittenEvents > 1 ? `${count(Math.floor(thread.overwrittenEvents / 2))} overwritten` : "";
}

export function Gutter({ scene, height, scroll }: { scene: Scene; height: number; scroll: number }) {
  const choice = useStore((s) => s.choice);
  void scroll;
  const traces = useStore((s) => s.traces);
  const hasStates = traces.some(({ info }) => info.states);
  useEffect(wantRanks, [choice.order, traces]);
  // Folded or not, for the button that does it to all.
  const allFolded = traces.every(({ info }, t) =>
    info.threads.every((thread) => choice.folded.has(threadKey(t, thread.index))),
  );
  scene.height = height;
  const placed = scene.placed();
  const top = RULER + scene.pinnedShown;
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : 1;
    store.set({ scroll: Math.min(scene.mostScroll, Math.max(0, scene.scrollNow() + event.deltaY * unit)) });
  };
  return (
    <div class="gutter" onWheel={wheel}>
      <div class="gutter-tools" style={{ height: `${RULER}px` }}>
        <input
          type="search"
          placeholder="Filter threads"
          aria-label="Filter threads by name or id"
          value={choice.filter}
          data-testid="thread-filter"
          onInput={(event) => store.set({ choice: { ...choice, filter: event.currentTarget.value }, scroll: 0 })}
        />
        <select
          aria-label="Order of threads"
          title="Order of threads"
          value={choice.order}
          onChange={(event) => store.set({ choice: { ...choice, order: event.currentTarget.value as Order } })}
        >
          {ORDERS.filter((order) => hasStates || !order.needsStates).map((order) => (
            <option value={order.id}>{order.label}</option>
          ))}
        </select>
        <button
          class={`icon${allFolded ? " on" : ""}`}
          aria-pressed={allFolded}
          aria-label="Fold all threads"
          title={`${allFolded ? "Unfold all threads" : "Fold all threads: each one as a strip"} (Shift+K)`}
          data-testid="fold-all"
          onClick={toggleAllFolded}
        >
          <Icon name={allFolded ? "right" : "down"} />
        </button>
        <button
          class={`icon${choice.hideIdle ? " on" : ""}`}
          aria-pressed={choice.hideIdle}
          aria-label="Hide threads that are idle in view"
          title="Hide threads that are idle in view"
          onClick={() => store.set({ choice: { ...choice, hideIdle: !choice.hideIdle } })}
        >
          <Icon name={choice.hideIdle ? "eye-off" : "eye"} />
        </button>
      </div>
      <div class="heads" role="list" aria-label="Tracks">
        <div class="heads-clip" style={{ top: `${top}px` }}>
          {placed
            .filter((p) => !p.pinned)
            .map((p) => (
              <Head key={p.track.key} place={{ ...p, top: p.top - top }} />
            ))}
        </div>
        <div class="heads-clip pinned" style={{ top: `${RULER}px`, height: `${scene.pinnedShown}px` }}>
          {placed
            .filter((p) => p.pinned)
            .map((p) => (
              <Head key={p.track.key} place={{ ...p, top: p.top - RULER }} />
            ))}
        </div>
      </div>
    </div>
  );
}
