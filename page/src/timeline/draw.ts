// SPDX-License-Identifier: MIT
// One picture of the timeline: ruler, lanes, and the tracks, each as its kind draws it. What follows the pointer is
// drawn above it by overlay.ts.
import type { State } from "../model/store";
import { moment, step } from "../model/time";
import { Frame } from "./frame";
import { kindOf } from "./kinds";
import { FONT, type Renderer } from "./renderer";
import { RULER, type Placed, type Scene } from "./scene";

export function ticks(state: State, width: number): { stepNs: number; at: number[] } {
  const stepNs = step((state.view.span / width) * 110);
  const at: number[] = [];
  const first = Math.ceil(state.view.begin / stepNs);
  for (let i = first; i * stepNs <= state.view.begin + state.view.span && at.length < 400; ++i) at.push(i * stepNs);
  return { stepNs, at };
}

export function drawRuler(r: Renderer, scene: Scene, state: State): void {
  const { inks } = scene;
  r.rect(0, 0, r.width, RULER, inks.ground);
  const { stepNs, at } = ticks(state, r.width);
  const x = (ns: number) => ((ns - state.view.begin) / state.view.span) * r.width;
  const small = stepNs / 5;
  if (small >= 1)
    for (let i = Math.ceil(state.view.begin / small); i * small <= state.view.begin + state.view.span; ++i)
      r.rect(Math.round(x(i * small)), RULER - 5, 1, 4, inks.rule);
  for (const ns of at) {
    const px = Math.round(x(ns));
    r.rect(px, RULER - 10, 1, 9, inks.quiet);
    const text = moment(ns, stepNs, at[at.length - 1]);
    if (px + 6 + r.textWidth(text) < r.width) r.text(text, px + 4, RULER / 2 - 2, inks.quiet, FONT);
  }
  r.rect(0, RULER - 1, r.width, 1, inks.rule);
}

/** Draws all; returns how many slices' rows were painted, for tests and measurements. */
export function drawFrame(r: Renderer, scene: Scene, state: State): number {
  const { inks } = scene;
  r.clear(inks.ground);
  const placed = scene.placed();
  const pinnedShown = scene.pinnedShown;
  const top = RULER + pinnedShown;
  let rows = 0;
  r.clip(top, r.height - top);
  rows += drawArea(
    r,
    scene,
    state,
    placed.filter((p) => !p.pinned),
  );
  r.unclip();
  if (pinnedShown > 0) {
    r.clip(RULER, pinnedShown);
    r.rect(0, RULER, r.width, pinnedShown, inks.ground);
    rows += drawArea(
      r,
      scene,
      state,
      placed.filter((p) => p.pinned),
    );
    r.unclip();
    r.rect(0, top - 2, r.width, 2, inks.quiet);
  }
  drawRuler(r, scene, state);
  return rows;
}

function drawArea(r: Renderer, scene: Scene, state: State, placed: readonly Placed[]): number {
  const { inks } = scene;
  const frame = new Frame(r, scene, state);
  for (const place of placed) {
    const { track, top } = place;
    if (track.info) kindOf(track.kind)?.drawGround?.(frame, place);
    else r.rect(0, top, r.width, track.height - 1, inks.heading);
  }
  for (const ns of ticks(state, r.width).at) {
    const { top, track } = placed[placed.length - 1] ?? { top: RULER, track: { height: 0 } };
    const first = placed[0]?.top ?? RULER;
    r.rect(Math.round(frame.toX(ns)), first, 1, top + track.height - first, inks.grid);
  }
  for (const place of placed) {
    const { track, top } = place;
    r.rect(0, top + track.height - 1, r.width, 1, inks.rule);
    for (const { info } of track.strips) kindOf(info.kind)?.draw(frame, place, info);
    if (track.info) kindOf(track.kind)?.draw(frame, place, track.info);
  }
  const lines = frame.finish();
  for (const place of placed) if (place.track.info) kindOf(place.track.kind)?.drawAbove?.(frame, place);
  return lines;
}
