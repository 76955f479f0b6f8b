// SPDX-License-Identifier: MIT
// What is seen, as a PNG: the timeline with its tracks' names.
import { visible } from "../model/names";
import { store } from "../model/store";
import { SMALL } from "./renderer";
import { RULER, type Scene } from "./scene";

const NAMES = 190;

export async function picture(scene: Scene, canvas: HTMLCanvasElement): Promise<Blob> {
  const { scale, width, height, inks } = scene;
  const out = document.createElement("canvas");
  out.width = Math.round((width + NAMES) * scale);
  out.height = Math.round(height * scale);
  const c = out.getContext("2d");
  if (!c) throw new Error("This browser has no 2D canvas.");
  c.fillStyle = inks.ground;
  c.fillRect(0, 0, out.width, out.height);
  c.drawImage(canvas, Math.round(NAMES * scale), 0);
  c.scale(scale, scale);
  c.textBaseline = "middle";
  const clipped = (text: string, x: number, y: number, room: number) => {
    c.save();
    c.beginPath();
    c.rect(x, y - 10, room, 20);
    c.clip();
    c.fillText(text, x, y);
    c.restore();
  };
  const title = store.state.traces.map((t) => t.info.name).join(" · ");
  c.fillStyle = inks.quiet;
  c.font = SMALL;
  clipped(title, 8, RULER / 2, NAMES - 12);
  const top = RULER + scene.pinnedShown;
  for (const { track, top: y, pinned } of scene.placed()) {
    c.save();
    c.beginPath();
    if (pinned) c.rect(0, RULER, NAMES, scene.pinnedShown);
    else c.rect(0, top, NAMES, height - top);
    c.clip();
    c.fillStyle = inks.text;
    c.font = `${track.kind === "process" ? "600 " : ""}12px system-ui, "DejaVu Sans", sans-serif`;
    clipped(visible(track.title), 8, y + 12, NAMES - 16);
    if (track.height > 28) {
      c.fillStyle = inks.quiet;
      c.font = SMALL;
      clipped(track.subtitle, 8, y + 26, NAMES - 16);
    }
    c.fillStyle = inks.rule;
    c.fillRect(0, y + track.height - 1, NAMES, 1);
    c.restore();
  }
  return await new Promise((resolve, reject) =>
    out.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The browser could not make a PNG."))), "image/png"),
  );
}

export function save(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
