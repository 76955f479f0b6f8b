// SPDX-License-Identifier: MIT
// Arrows between tracks, straight up or down, and what is written beside them.
import { FONT } from "./renderer";
import type { Placed, Scene } from "./scene";

const HEAD = 5; // pixels

/** Where a level of a placed thread is crossed. */
export function middleOf({ top, track }: Placed, depth: number): number {
  const row = Math.min(depth, Math.max(0, track.rows - 1));
  return top + 2 + track.lead + row * track.rowHeight + track.rowHeight / 2;
}

export function drawArrow(c: CanvasRenderingContext2D, x: number, from: number, to: number, colour: string): void {
  const back = to > from ? -HEAD : HEAD;
  c.strokeStyle = c.fillStyle = colour;
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(x, from);
  c.lineTo(x, to + back);
  c.stroke();
  c.beginPath();
  c.moveTo(x, to);
  c.lineTo(x - HEAD, to + 2 * back);
  c.lineTo(x + HEAD, to + 2 * back);
  c.fill();
  c.beginPath();
  c.arc(x, from, 3.5, 0, 7);
  c.fill();
}

/** Beside a place, on the side that has room. */
export function drawArrowLabel(
  c: CanvasRenderingContext2D,
  { inks, width }: Scene,
  x: number,
  y: number,
  text: string,
): void {
  c.font = FONT;
  c.textBaseline = "middle";
  c.textAlign = "left";
  const room = c.measureText(text).width + 10;
  const left = x + 8 + room > width ? x - 8 - room : x + 8;
  c.globalAlpha = 0.9;
  c.fillStyle = inks.ground;
  c.fillRect(left, y - 8, room, 16);
  c.globalAlpha = 1;
  c.fillStyle = inks.text;
  c.fillText(text, left + 5, y);
}
