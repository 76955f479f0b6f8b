// SPDX-License-Identifier: MIT
// What the timeline draws with. A small interface, so that drawing is tested without a browser and
// another surface than Canvas2D can take its place. Lengths are CSS pixels unless said otherwise.
//
// Calls are drawn as bands: a row of the timeline is one line of colours, a word for each device
// pixel, stretched to the row's height. So a frame costs as much as the rows on screen, however
// many calls lie behind them: 60 rows of 1920 pixels are 115,200 words, not 100 million rectangles.

/** Patterns that are told apart without colour: lines that rise, that fall, both; dots. */
export type Hatch = "rising" | "falling" | "crossed" | "dotted";

export interface Band {
  readonly y: number;
  readonly height: number;
  /** One word per device pixel from the left edge, 0xAABBGGRR; 0 leaves what is below. */
  readonly line: Uint32Array;
}

export interface Renderer {
  /** Device pixels for a CSS pixel. */
  readonly scale: number;
  readonly width: number;
  readonly height: number;
  clear(colour: string): void;
  /** Only [y, y + height) is drawn to until unclip(). */
  clip(y: number, height: number): void;
  unclip(): void;
  bands(list: readonly Band[]): void;
  rect(x: number, y: number, width: number, height: number, colour: string): void;
  frame(x: number, y: number, width: number, height: number, colour: string, thickness: number): void;
  /** A pattern: a gap in what is known. */
  hatch(x: number, y: number, width: number, height: number, colour: string, kind: Hatch): void;
  polygon(points: readonly number[], colour: string): void;
  text(text: string, x: number, y: number, colour: string, font?: string, align?: CanvasTextAlign): void;
  textWidth(text: string, font?: string): number;
}

export const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
export const SMALL = '10px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';

export class CanvasRenderer implements Renderer {
  scale = 1;
  width = 0;
  height = 0;
  private readonly context: CanvasRenderingContext2D;
  private readonly lines: HTMLCanvasElement;
  private image: ImageData | undefined;
  private readonly hatches = new Map<string, CanvasPattern>();
  private readonly widths = new Map<string, number>();
  private font = "";

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("This browser has no 2D canvas.");
    this.context = context;
    this.lines = document.createElement("canvas");
  }

  /** Fits the canvas to its place; true when that changed anything. */
  resize(width: number, height: number, scale: number): boolean {
    const w = Math.max(1, Math.round(width * scale));
    const h = Math.max(1, Math.round(height * scale));
    if (this.canvas.width === w && this.canvas.height === h && this.scale === scale) return false;
    this.canvas.width = w;
    this.canvas.height = h;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.scale = scale;
    this.width = width;
    this.height = height;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.textBaseline = "middle";
    this.font = "";
    this.hatches.clear();
    return true;
  }

  clear(colour: string): void {
    this.context.fillStyle = colour;
    this.context.fillRect(0, 0, this.width, this.height);
  }

  clip(y: number, height: number): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(0, y, this.width, height);
    this.context.clip();
  }

  unclip(): void {
    this.context.restore();
    this.font = "";
  }

  bands(list: readonly Band[]): void {
    if (list.length === 0) return;
    const width = this.canvas.width;
    // The lines' canvas only grows: a change of size would clear and reallocate it in every frame.
    if (this.lines.width !== width || this.lines.height < list.length) {
      this.lines.width = width;
      this.lines.height = Math.max(this.lines.height, list.length + 16);
      this.image = undefined;
    }
    const lines = this.lines.getContext("2d", { willReadFrequently: true });
    if (!lines) return;
    this.image ??= lines.createImageData(width, this.lines.height);
    const words = new Uint32Array(this.image.data.buffer);
    list.forEach((band, i) => words.set(band.line.subarray(0, width), i * width));
    lines.putImageData(this.image, 0, 0, 0, 0, width, list.length);
    const context = this.context;
    context.imageSmoothingEnabled = false;
    list.forEach((band, i) => {
      const top = Math.round(band.y * this.scale);
      const bottom = Math.round((band.y + band.height) * this.scale);
      context.drawImage(this.lines, 0, i, width, 1, 0, top / this.scale, this.width, (bottom - top) / this.scale);
    });
  }

  rect(x: number, y: number, width: number, height: number, colour: string): void {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, width, height);
  }

  frame(x: number, y: number, width: number, height: number, colour: string, thickness: number): void {
    this.context.strokeStyle = colour;
    this.context.lineWidth = thickness;
    this.context.strokeRect(x, y, width, height);
  }

  hatch(x: number, y: number, width: number, height: number, colour: string, kind: Hatch): void {
    const key = `${kind} ${colour}`;
    let pattern = this.hatches.get(key);
    if (!pattern) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 8;
      const ink = tile.getContext("2d");
      if (!ink) return;
      ink.strokeStyle = ink.fillStyle = colour;
      ink.lineWidth = 1.4;
      if (kind === "dotted")
        for (const [dx, dy] of [
          [0, 0],
          [4, 4],
        ] as const)
          ink.fillRect(dx, dy, 2, 2);
      for (const shift of [-8, 0, 8])
        for (const up of [true, false]) {
          if (kind === "dotted" || kind === (up ? "falling" : "rising")) continue;
          ink.beginPath();
          ink.moveTo(shift - 1, up ? 9 : -1);
          ink.lineTo(shift + 9, up ? -1 : 9);
          ink.stroke();
        }
      const made = this.context.createPattern(tile, "repeat");
      if (!made) return;
      pattern = made;
      this.hatches.set(key, pattern);
    }
    this.context.fillStyle = pattern;
    this.context.fillRect(x, y, width, height);
  }

  polygon(points: readonly number[], colour: string): void {
    const context = this.context;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(points[0]!, points[1]!);
    for (let i = 2; i + 1 < points.length; i += 2) context.lineTo(points[i]!, points[i + 1]!);
    context.fill();
  }

  text(text: string, x: number, y: number, colour: string, font = FONT, align: CanvasTextAlign = "left"): void {
    const context = this.context;
    if (this.font !== font) context.font = this.font = font;
    if (context.textAlign !== align) context.textAlign = align;
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }

  textWidth(text: string, font = FONT): number {
    const key = font === FONT ? text : font + text;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.font !== font) this.context.font = this.font = font;
      width = this.context.measureText(text).width;
      if (this.widths.size > 50_000) this.widths.clear();
      this.widths.set(key, width);
    }
    return width;
  }
}
