// SPDX-License-Identifier: MIT
// Stretches of threads that are not read yet: they must not look idle.
import type { State } from "../model/store";
import { SMALL, type Renderer } from "./renderer";
import type { Placed, Scene } from "./scene";

const EVERY = 220; // px from one word to the next

export function drawUnread(r: Renderer, scene: Scene, state: State, { track, top }: Placed): void {
  const { inks } = scene;
  const thread = state.traces[track.trace]!.info.threads[track.thread]!;
  if (thread.unreadFrom === null) return;
  const toX = (ns: number) => ((ns + scene.offset(track.trace) - state.view.begin) / state.view.span) * r.width;
  const from = Math.max(-2, toX(thread.unreadFrom));
  const to = Math.min(r.width + 2, toX(thread.last));
  if (to < 0 || from > r.width) return;
  const width = Math.max(1, to - from);
  r.rect(from, top, width, track.height - 1, inks.heading);
  const text = "not read yet";
  for (let x = from + 8; x + r.textWidth(text, SMALL) + 8 < from + width; x += EVERY)
    r.text(text, x, top + track.height / 2, inks.quiet, SMALL);
}
