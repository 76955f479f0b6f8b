// SPDX-License-Identifier: MIT
// What follows the pointer and the selection, above the picture: cheap to draw in every frame.
import { threadName } from "../model/names";
import type { Range, State, Waking } from "../model/store";
import { duration, moment, step } from "../model/time";
import { threadKey } from "../model/tracks";
import { drawArrow, drawArrowLabel, middleOf } from "./arrows";
import { drawFlows } from "./flow_lines";
import { drawLock } from "./lock_lines";
import { FONT } from "./renderer";
import { RULER, type Hit, type Scene } from "./scene";

export interface Pointer {
  x: number;
  y: number;
}

export function drawOverlay(
  c: CanvasRenderingContext2D,
  scene: Scene,
  state: State,
  hover: Hit | undefined,
  pointer: Pointer | undefined,
): void {
  const { inks, width, height } = scene;
  c.clearRect(0, 0, width, height);
  if (state.range) drawRange(c, scene, state, state.range);
  const { selected, selectedSpan } = state;
  if (selected && selectedSpan) {
    const begin = selectedSpan.begin + scene.offset(selected.trace);
    const call = { begin, duration: selectedSpan.end - selectedSpan.begin, depth: selectedSpan.depth };
    box(c, scene, state, threadKey(selected.trace, selected.thread), call, inks.text, 2);
  }
  const { frame, frameSpan } = state;
  if (frame && frameSpan) {
    const bar = {
      begin: frameSpan.begin + scene.offset(frame.trace),
      duration: frameSpan.end - frameSpan.begin,
      depth: 0,
    };
    box(c, scene, state, `${frame.trace}:f${frame.set}`, bar, inks.text, 2);
  }
  if (state.waking) drawWaking(c, scene, state, state.waking);
  if (state.flows) drawFlows(c, scene, state, state.flows);
  if (state.lock) drawLock(c, scene, state, state.lock);
  if (state.note) drawNote(c, scene, state, state.note);
  const { pointed } = state;
  if (pointed) {
    const begin = pointed.begin + scene.offset(pointed.trace);
    const call = { begin, duration: pointed.end - pointed.begin, depth: pointed.depth };
    box(c, scene, state, threadKey(pointed.trace, pointed.thread), call, inks.accent, 3);
  }
  if (hover) box(c, scene, state, hover.track.key, hover, inks.accent, 1.5);
  if (pointer && pointer.x >= 0 && pointer.x <= width) drawPointer(c, scene, state, pointer);
}

const toX = (scene: Scene, { view }: State, ns: number) => ((ns - view.begin) / view.span) * scene.width;

const HEAD = 5; // of a note, pixels

/** From the call that ended a wait to the call that waited, when it did. */
function drawWaking(c: CanvasRenderingContext2D, scene: Scene, state: State, waking: Waking): void {
  const { inks, width, height } = scene;
  const placed = scene.placed();
  const find = (thread: number) => placed.find((p) => p.track.key === threadKey(waking.trace, thread));
  const waiter = find(waking.thread);
  const waker = find(waking.by.thread);
  const x = toX(scene, state, waking.end + scene.offset(waking.trace));
  if (!waiter || x < 0 || x > width) return;
  const to = middleOf(waiter, state.selectedSpan?.depth ?? 0);
  // Off the screen: the arrow comes from that edge.
  const order = scene.layout().scrolled.map((track) => track.key);
  const below = order.indexOf(threadKey(waking.trace, waking.by.thread)) > order.indexOf(waiter.track.key);
  const from = waker ? middleOf(waker, waking.by.depth) : below ? height - 12 : RULER + scene.pinnedShown + 12;
  c.save();
  c.beginPath();
  c.rect(0, RULER, width, height - RULER);
  c.clip();
  drawArrow(c, x, from, to, inks.text);
  const who = threadName(state.traces[waking.trace]!.info, waking.by.thread);
  const text = waker ? "woke it" : `woken by ${who}, ${below ? "below" : "above"}`;
  drawArrowLabel(c, scene, x, waker ? (from + to) / 2 : from, text);
  c.restore();
}

/** The chosen note: a line over its thread's track, and a head on it. */
function drawNote(c: CanvasRenderingContext2D, scene: Scene, state: State, note: NonNullable<State["note"]>): void {
  const { inks, width, height } = scene;
  const place = scene.placed().find((p) => p.track.key === threadKey(note.trace, note.thread));
  const x = toX(scene, state, note.time + scene.offset(note.trace));
  if (!place || x < 0 || x > width) return;
  const top = RULER + scene.pinnedShown;
  c.save();
  c.beginPath();
  if (place.pinned) c.rect(0, RULER, width, scene.pinnedShown);
  else c.rect(0, top, width, height - top);
  c.clip();
  c.fillStyle = inks.note;
  c.fillRect(Math.round(x) - 1, place.top, 2, place.track.height - 1);
  const y = place.top + 2 + place.track.lead - place.track.lane - place.track.notes;
  const middle = place.track.notes > 0 ? y + place.track.notes / 2 : place.top + HEAD;
  c.beginPath();
  for (const [dx, dy] of [
    [0, -HEAD],
    [HEAD, 0],
    [0, HEAD],
    [-HEAD, 0],
  ] as const)
    c.lineTo(x + dx, middle + dy);
  c.fill();
  c.restore();
}

/** Around a call. */
function box(
  c: CanvasRenderingContext2D,
  scene: Scene,
  state: State,
  trackKey: string,
  call: { depth: number; begin: number; duration: number },
  colour: string,
  thick: number,
): void {
  const { width, height } = scene;
  const place = scene.placed().find((p) => p.track.key === trackKey);
  if (!place || call.depth >= place.track.rows) return;
  const x0 = toX(scene, state, call.begin);
  const x1 = Math.max(x0 + 2, toX(scene, state, call.begin + call.duration));
  if (x1 < 0 || x0 > width) return;
  const top = RULER + scene.pinnedShown;
  c.save();
  c.beginPath();
  if (place.pinned) c.rect(0, RULER, width, scene.pinnedShown);
  else c.rect(0, top, width, height - top);
  c.clip();
  c.strokeStyle = colour;
  c.lineWidth = thick;
  const left = Math.max(x0, -4);
  const y = place.top + 2 + place.track.lead + call.depth * place.track.rowHeight;
  c.strokeRect(left, y - thick / 2 + 0.5, Math.min(x1, width + 4) - left, place.track.rowHeight - 2 + thick);
  c.restore();
}

function drawRange(c: CanvasRenderingContext2D, scene: Scene, state: State, range: Range): void {
  const { inks, width, height } = scene;
  const x0 = toX(scene, state, range.begin);
  const x1 = toX(scene, state, range.end);
  c.fillStyle = inks.accentSoft;
  c.fillRect(x0, 0, x1 - x0, height);
  c.fillStyle = inks.accent;
  c.fillRect(Math.round(x0), 0, 1, height);
  c.fillRect(Math.round(x1) - 1, 0, 1, height);
  if (x1 <= 0 || x0 >= width) return;
  const text = duration(range.end - range.begin);
  c.font = `600 ${FONT}`;
  c.textBaseline = "middle";
  const textWidth = c.measureText(text).width + 12;
  const inView = (Math.max(x0, 0) + Math.min(x1, width)) / 2;
  const middle = Math.min(Math.max(inView, textWidth / 2), width - textWidth / 2);
  c.beginPath();
  c.roundRect(middle - textWidth / 2, RULER + 4, textWidth, 18, 4);
  c.fill();
  c.fillStyle = inks.ground;
  c.textAlign = "center";
  c.fillText(text, middle, RULER + 13.5);
}

/** A line through all tracks; on the ruler its time. */
function drawPointer(c: CanvasRenderingContext2D, scene: Scene, state: State, pointer: Pointer): void {
  const { inks, width, height } = scene;
  c.fillStyle = inks.accent;
  c.globalAlpha = 0.55;
  c.fillRect(Math.round(pointer.x), RULER, 1, height - RULER);
  c.globalAlpha = 1;
  if (pointer.y >= RULER) return;
  const ns = state.view.begin + (pointer.x / width) * state.view.span;
  const text = moment(Math.round(ns), step(state.view.span / width), state.view.begin + state.view.span);
  c.font = FONT;
  c.textBaseline = "middle";
  const w = c.measureText(text).width + 10;
  const x = Math.min(Math.max(pointer.x - w / 2, 0), width - w);
  c.fillStyle = inks.accent;
  c.beginPath();
  c.roundRect(x, 4, w, 18, 4);
  c.fill();
  c.fillStyle = inks.ground;
  c.textAlign = "left";
  c.fillText(text, x + 5, 13.5);
}
