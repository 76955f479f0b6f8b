// SPDX-License-Identifier: MIT
// Walking the picture by keyboard: from call to caller, callee and neighbours, and to the next track.
import { kSummed } from "../backend/types/tiles";
import { bringTrack, moveTo, select } from "../model/actions";
import { store } from "../model/store";
import { threadKey } from "../model/tracks";
import { fit } from "../model/view";
import { middleOf } from "./arrows";
import type { Hit, Scene } from "./scene";
import { BAND_LEVELS } from "./tile_store";

let scene: Scene | undefined;
export function setScene(now: Scene): void {
  scene = now;
}
export function currentScene(): Scene | undefined {
  return scene;
}

function choose(hit: Hit): void {
  if (hit.flags & kSummed) {
    const middle = hit.begin + hit.duration / 2;
    moveTo(fit(middle - hit.pixelNs, middle + hit.pixelNs, store.total));
    store.set({ notice: `${hit.row.count[hit.at]!} calls share a pixel here: zoomed in. Press Enter to select.` });
    return;
  }
  const { view } = store.state;
  // What can be seen well where it is stays there: walking the picture must not move it.
  const seen = Math.min(hit.begin + hit.duration, view.begin + view.span) - Math.max(hit.begin, view.begin);
  const still = seen >= Math.min(hit.duration, view.span * 0.2) * 0.999 && hit.duration >= view.span / 400;
  const at = { trace: hit.trace, thread: hit.thread, index: hit.index };
  const times = {
    begin: hit.begin - scene!.offset(hit.trace),
    duration: hit.duration,
    function: hit.func,
    depth: hit.depth,
  };
  select(at, times, { reveal: !still });
  if (still) bringTrack(hit.trace, hit.thread, hit.depth);
}

/** All slices on screen of one level of a track, in order. */
function slices(key: string, depth: number): Hit[] {
  if (!scene) return [];
  const { view } = store.state;
  const track = [...scene.layout().pinned, ...scene.layout().scrolled].find((t) => t.key === key);
  if (!track?.info || track.kind !== "thread") return [];
  const begin = view.begin - scene.offset(track.trace);
  const pixel = view.span / Math.max(1, scene.width * scene.scale);
  const need = { track: track.info.id, band: Math.floor(depth / BAND_LEVELS) };
  const found = new Map<number, Hit>();
  for (const { tile } of scene.tiles(track.trace)?.cover(need, begin, begin + view.span, pixel) ?? [])
    for (const row of tile.rows) {
      if (row.depth !== depth) continue;
      for (let at = 0; at < row.begin.length; ++at) {
        if (row.begin[at]! > begin + view.span || row.begin[at]! + row.duration[at]! < begin) continue;
        found.set(row.index[at]!, scene.hitOf(track, depth, row, at, tile.pixelNs));
      }
    }
  return [...found.values()].sort((a, b) => a.begin - b.begin);
}

const longest = (list: readonly Hit[]): Hit | undefined =>
  list.reduce<Hit | undefined>((best, hit) => (!best || hit.duration > best.duration ? hit : best), undefined);

/** Enter: the longest call in the middle of the first track on screen that has one. */
export function selectVisible(): void {
  if (!scene) return;
  const { selected } = store.state;
  const placed = scene.placed().filter((p) => p.track.kind === "thread");
  const own = selected && placed.find((p) => p.track.key === `${selected.trace}:${selected.thread}`);
  for (const { track } of own ? [own, ...placed] : placed)
    for (let depth = 0; depth < Math.min(track.rows, 64); ++depth) {
      const hit = longest(slices(track.key, depth));
      if (hit) return choose(hit);
    }
  store.set({ notice: "No call is in sight. Press 0 to see everything." });
}

/** Shift and arrows. */
export function walk(direction: "up" | "down" | "left" | "right"): void {
  const { selected, selectedSpan } = store.state;
  if (!selected || !selectedSpan || !scene) return selectVisible();
  const key = `${selected.trace}:${selected.thread}`;
  const offset = scene.offset(selected.trace);
  const begin = selectedSpan.begin + offset;
  const end = selectedSpan.end + offset;
  let hit: Hit | undefined;
  if (direction === "up") {
    hit = slices(key, selectedSpan.depth - 1).find((h) => h.begin <= begin && h.begin + h.duration >= end);
  } else if (direction === "down") {
    hit = longest(slices(key, selectedSpan.depth + 1).filter((h) => h.begin >= begin && h.begin < end));
  } else {
    const row = slices(key, selectedSpan.depth);
    const at = row.findIndex((h) => h.index === selected.index);
    hit = at < 0 ? undefined : row[at + (direction === "left" ? -1 : 1)];
  }
  if (hit) choose(hit);
  else
    store.set({
      notice: {
        up: "No caller.",
        down: "It called nothing that is traced.",
        left: "No call before it in sight.",
        right: "No call after it in sight.",
      }[direction],
    });
}

/** The menu of the selected call, below it; in the middle where it is out of sight. */
export function openMenu(): void {
  const { selected, selectedSpan, view } = store.state;
  if (!selected || !selectedSpan || !scene) {
    store.set({ notice: "Select a call first." });
    return;
  }
  const place = scene.placed().find(({ track }) => track.key === threadKey(selected.trace, selected.thread));
  const begin = selectedSpan.begin + scene.offset(selected.trace);
  const x = place ? ((begin - view.begin) / view.span) * scene.width : scene.width / 2;
  const y = place ? middleOf(place, selectedSpan.depth) + place.track.rowHeight / 2 : scene.height / 2;
  const area = document.querySelector(".canvas-area")!.getBoundingClientRect();
  store.set({ menu: { x: area.left + Math.max(0, Math.min(x, scene.width)), y: area.top + y } });
}

/** Page keys: the next track's call at the same time. */
export function walkTrack(by: 1 | -1): void {
  if (!scene) return;
  const { selected } = store.state;
  const layout = scene.layout();
  const tracks = [...layout.pinned, ...layout.scrolled].filter((t) => t.kind === "thread");
  const at = selected ? tracks.findIndex((t) => t.key === `${selected.trace}:${selected.thread}`) : -1;
  for (let i = at + by; i >= 0 && i < tracks.length; i += by) {
    const hit = longest(slices(tracks[i]!.key, 0));
    if (hit) return choose(hit);
  }
  store.set({
    notice: by > 0 ? "No track further down has calls in sight." : "No track further up has calls in sight.",
  });
}
