// SPDX-License-Identifier: MIT
// From step to step of the flows that the selected call is in: a curve with a head at the later one.
import { flowArrows, type FlowEnd } from "../model/flows";
import type { State } from "../model/store";
import { threadKey } from "../model/tracks";
import { middleOf } from "./arrows";
import { RULER, type Scene } from "./scene";

const EDGE = 12; // from the edge of the screen, where an end lies beyond it
const HEAD = 5;
const FAR = 20_000; // pixels beyond which nobody sees where a curve goes

export function drawFlows(
  c: CanvasRenderingContext2D,
  scene: Scene,
  state: State,
  { at, flows }: NonNullable<State["flows"]>,
): void {
  const { width, height } = scene;
  const placed = scene.placed();
  const order = scene.layout().scrolled.map((track) => track.key);
  const xOf = ({ time }: FlowEnd) => {
    const x = ((time + scene.offset(at.trace) - state.view.begin) / state.view.span) * width;
    return Math.max(-FAR, Math.min(width + FAR, x));
  };
  const yOf = ({ thread, depth }: FlowEnd, other: FlowEnd) => {
    const key = threadKey(at.trace, thread);
    const place = placed.find((p) => p.track.key === key);
    if (place) return { y: middleOf(place, depth), seen: true };
    const below = order.indexOf(key) > order.indexOf(threadKey(at.trace, other.thread));
    return { y: below ? height - EDGE : RULER + scene.pinnedShown + EDGE, seen: false };
  };
  c.save();
  c.beginPath();
  c.rect(0, RULER, width, height - RULER);
  c.clip();
  c.strokeStyle = c.fillStyle = scene.inks.text;
  for (const { from, to, coroutine } of flowArrows(flows, at.thread, state.selectedSpan?.depth ?? 0)) {
    const a = yOf(from, to);
    const b = yOf(to, from);
    const x0 = xOf(from);
    const x1 = xOf(to);
    if ((!a.seen && !b.seen) || Math.max(x0, x1) < 0 || Math.min(x0, x1) > width) continue;
    const bend = Math.max(16, Math.min(80, Math.abs(x1 - x0) / 2));
    // In one track a curve would lie on the calls between the two: it goes above them.
    const lift = a.y === b.y ? -14 : 0;
    c.lineWidth = 1.5;
    c.setLineDash(coroutine ? [5, 3] : []);
    c.beginPath();
    c.moveTo(x0, a.y);
    c.bezierCurveTo(x0 + bend, a.y + lift, x1 - bend, b.y + lift, x1 - HEAD, b.y);
    c.stroke();
    c.setLineDash([]);
    c.beginPath();
    c.moveTo(x1, b.y);
    c.lineTo(x1 - 2 * HEAD, b.y - HEAD);
    c.lineTo(x1 - 2 * HEAD, b.y + HEAD);
    c.fill();
    c.beginPath();
    c.arc(x0, a.y, 3, 0, 7);
    c.fill();
  }
  c.restore();
}
