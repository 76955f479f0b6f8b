// What follows the pointer and the selection, above the picture: cheap to draw in every frame.
import type { State } from "../model/store";
import { duration, moment, step } from "../model/time";
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
  const toX = (ns: number) => ((ns - state.view.begin) / state.view.span) * width;
  const top = RULER + scene.pinnedShown;

  const box = (trackKey: string, depth: number, begin: number, length: number, colour: string, thick: number) => {
    const place = scene.placed().find((p) => p.track.key === trackKey);
    if (!place || depth >= place.track.rows) return;
    const x0 = toX(begin);
    const x1 = Math.max(x0 + 2, toX(begin + length));
    if (x1 < 0 || x0 > width) return;
    c.save();
    c.beginPath();
    if (place.pinned) c.rect(0, RULER, width, scene.pinnedShown);
    else c.rect(0, top, width, height - top);
    c.clip();
    c.strokeStyle = colour;
    c.lineWidth = thick;
    const left = Math.max(x0, -4);
    const y = place.top + 2 + place.track.lead + depth * place.track.rowHeight;
    c.strokeRect(left, y - thick / 2 + 0.5, Math.min(x1, width + 4) - left, place.track.rowHeight - 2 + thick);
    c.restore();
  };

  if (state.range) {
    const x0 = toX(state.range.begin);
    const x1 = toX(state.range.end);
    c.fillStyle = inks.accentSoft;
    c.fillRect(x0, 0, x1 - x0, height);
    c.fillStyle = inks.accent;
    c.fillRect(Math.round(x0), 0, 1, height);
    c.fillRect(Math.round(x1) - 1, 0, 1, height);
    const text = duration(state.range.end - state.range.begin);
    c.font = `600 ${FONT}`;
    c.textBaseline = "middle";
    const textWidth = c.measureText(text).width + 12;
    const middle = Math.min(
      Math.max((Math.max(x0, 0) + Math.min(x1, width)) / 2, textWidth / 2),
      width - textWidth / 2,
    );
    if (x1 > 0 && x0 < width) {
      c.beginPath();
      c.roundRect(middle - textWidth / 2, RULER + 4, textWidth, 18, 4);
      c.fill();
      c.fillStyle = inks.ground;
      c.textAlign = "center";
      c.fillText(text, middle, RULER + 13.5);
    }
  }
  const { selected, selectedSpan } = state;
  if (selected && selectedSpan) {
    const begin = selectedSpan.begin + scene.offset(selected.trace);
    box(
      `${selected.trace}:${selected.thread}`,
      selectedSpan.depth,
      begin,
      selectedSpan.end - selectedSpan.begin,
      inks.text,
      2,
    );
  }
  if (hover) box(hover.track.key, hover.depth, hover.begin, hover.duration, inks.accent, 1.5);
  if (pointer && pointer.x >= 0 && pointer.x <= width) {
    c.fillStyle = inks.accent;
    c.globalAlpha = 0.55;
    c.fillRect(Math.round(pointer.x), RULER, 1, height - RULER);
    c.globalAlpha = 1;
    if (pointer.y < RULER) {
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
  }
}
