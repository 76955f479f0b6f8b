// SPDX-License-Identifier: MIT
// Draws the timeline on the next frame after anything changed, and only then; finds out what lies under the pointer.
import { firstPictureDrawn } from "../model/first_picture";
import { store } from "../model/store";
import type { Layout } from "../model/tracks";
import { drawFrame } from "./draw";
import { gapAt, type GapHit } from "./gaps";
import { noteAt, type NoteHit } from "./note_marks";
import { plotAt, type PlotHit } from "./plots";
import { drawOverlay, type Pointer } from "./overlay";
import { CanvasRenderer } from "./renderer";
import { Scene } from "./scene";
import { setScene } from "./steps";
import type { SliceHit } from "./track_renderer";

/** Frames drawn, their times, and whether all that is needed is there: read by tests and measurements. */
export interface FrameLog {
  frames: number;
  milliseconds: number[];
  complete: boolean;
  /** Whether the tracks' heights are those of what is in view, and values are beside names. */
  settled: boolean;
  /** Rows with calls or states in the last picture. */
  rows: number;
  /** Whether the trace is read to its end. */
  whole: boolean;
}
declare global {
  interface Window {
    karstFrames?: FrameLog;
  }
}

/** What lies under the pointer. */
export type Under =
  | { hit: SliceHit; gap?: undefined; note?: undefined }
  | { gap: GapHit; trace: number; thread: number; hit?: undefined; note?: undefined }
  | { note: NoteHit; hit?: undefined; gap?: undefined }
  | { plot: PlotHit; hit?: undefined; gap?: undefined; note?: undefined };

interface Canvases {
  base: HTMLCanvasElement | null;
  above: HTMLCanvasElement | null;
}

/** Told after each frame. */
interface Hooks {
  tip(what: (Under & { pointer: Pointer }) | undefined): void;
  busy(waits: boolean): void;
  /** What was drawn: the names beside it must be where their tracks are. */
  laidOut(layout: Layout): void;
}

export class FrameLoop {
  readonly scene = new Scene(store, () => this.schedule(true));
  private scheduled = 0;
  private stale = true;
  private pointer: Pointer | undefined;
  private renderer: CanvasRenderer | undefined;
  private readonly log: FrameLog = (window.karstFrames = {
    frames: 0,
    milliseconds: [],
    complete: false,
    settled: false,
    rows: 0,
    whole: false,
  });

  constructor(
    private readonly canvases: () => Canvases,
    private readonly hooks: Hooks,
  ) {
    setScene(this.scene);
  }

  /** `all`: the picture too, not only what follows the pointer. */
  schedule(all: boolean): void {
    this.stale ||= all;
    this.log.complete = false;
    if (this.scheduled === 0) this.scheduled = requestAnimationFrame(() => this.frame());
  }

  setPointer(at: Pointer | undefined): void {
    this.pointer = at;
    this.schedule(false);
  }

  private frame(): void {
    this.scheduled = 0;
    const { scene } = this;
    const { base, above } = this.canvases();
    const context = above?.getContext("2d");
    if (!base || !above || !context || scene.width === 0) return;
    const started = performance.now();
    this.renderer ??= new CanvasRenderer(base);
    scene.scale = window.devicePixelRatio || 1;
    this.renderer.resize(scene.width, scene.height, scene.scale);
    if (this.stale) {
      this.stale = false;
      scene.want();
      this.log.rows = drawFrame(this.renderer, scene, store.state);
    }
    fitCanvas(above, context, scene);
    this.drawPointer(context);
    this.hooks.busy(!scene.complete);
    this.hooks.laidOut(scene.layout());
    this.note(performance.now() - started);
  }

  private drawPointer(context: CanvasRenderingContext2D): void {
    const { scene, pointer, hooks } = this;
    const note = pointer && noteAt(scene, store.state, pointer.x, pointer.y);
    const hit = pointer && scene.hit(pointer.x, pointer.y);
    drawOverlay(context, scene, store.state, hit, pointer);
    if (note) return hooks.tip({ note, pointer });
    const plot = pointer && plotAt(scene, store.state, pointer.x, pointer.y);
    if (plot) return hooks.tip({ plot, pointer });
    const slice = hit ?? (pointer && scene.sliceHit(pointer.x, pointer.y));
    const gap = pointer && !slice ? gapAt(scene, store.state, pointer.x, pointer.y) : undefined;
    const track = gap && scene.trackAt(pointer!.y)!.track;
    if (!pointer) hooks.tip(undefined);
    else if (slice) hooks.tip({ hit: slice, pointer });
    else hooks.tip(gap && track ? { gap, trace: track.trace, thread: track.thread, pointer } : undefined);
  }

  private note(milliseconds: number): void {
    const { log, scene } = this;
    log.frames++;
    log.complete = scene.complete;
    log.settled = scene.settled;
    log.whole = store.state.traces.every((trace) => !trace.info.reading);
    if (scene.complete) firstPictureDrawn();
    log.milliseconds.push(milliseconds);
    if (log.milliseconds.length > 4000) log.milliseconds.splice(0, 2000);
  }
}

/** Gives a canvas the scene's size, in which one unit is a pixel of the page. */
function fitCanvas(canvas: HTMLCanvasElement, context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, scale } = scene;
  const w = Math.round(width * scale);
  const h = Math.round(height * scale);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
}
