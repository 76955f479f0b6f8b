// SPDX-License-Identifier: MIT
// Stretches of threads that are not read yet: they must not look idle.
import type { State } from "../model/store";
import { SMALL, type Renderer } from "./renderer";
import type { Placed, Scene } from "./scene";

const EVERY = 220; // px from one word to the next

export function drawUnread(r: Renderer, scene: Scene, state: State, place: Placed): void {
  const { info, from } = state.traces[place.track.trace]!;
  const thread = info.threads[place.track.thread]!;
  if (thread.unreadFrom !== null) drawStretch(r, scene, state, place, thread.unreadFrom, thread.last, "not read yet");
  // Calls that were under way then are there, which are drawn above.
  if (from !== undefined && thread.begin < from)
    drawStretch(r, scene, state, place, thread.begin, from, "not read while the page follows");
}

function drawStretch(
  r: Renderer,
  scene: Scene,
  state: State,
  { track, top }: Placed,
  begin: number,
  end: number,
  text: string,
): void {
  const { inks } = scene;
  const toX = (ns: number) => ((ns + scene.offset(track.trace) - state.view.begin) / state.view.span) * r.width;
  const from = Math.max(-2, toX(begin));
  const to = Math.min(r.width + 2, toX(end));
  if (to < 0 || from > r.width) return;
  const width = Math.max(1, to - from);
  r.rect(from, top, width, track.height - 1, inks.heading);
  for (let x = from + 8; x + r.textWidth(text, SMALL) + 8 < from + width; x += EVERY)
    r.text(text, x, top + track.height / 2, inks.quiet, SMALL);
}
