// SPDX-License-Identifier: MIT
// Mouse, touch and touchpad on the timeline, like a map: the wheel zooms at the pointer, dragging moves in
// time and across tracks. Dragging on the ruler, with Shift, or while measuring, marks a range.
import { kSummed } from "../backend/types/tiles";
import { deselect, moveTo, selectNote, setView } from "../model/actions";
import type { Store } from "../model/store";
import { fit, NARROWEST_NS, toTime, zoom } from "../model/view";
import { kindOf } from "./kinds";
import { noteAt, type NoteHit } from "./note_marks";
import { RULER, type Placed, type Scene } from "./scene";
import type { SliceHit } from "./track_renderer";

const CLICK = 4; // pixels that a click may move
/** The times of a range's edges snap to calls' ends within this many pixels. */
const SNAP = 6;

export interface InputHooks {
  pointer(at: { x: number; y: number } | undefined): void;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

interface Drag extends Point {
  readonly mode: "pan" | "range" | "edge";
  moved: boolean;
  /** A range's other end. */
  readonly from: number;
  /** What was in view when it began. */
  readonly begin: number;
  readonly scroll: number;
}

/** Of all pointers, from down to up. */
class Pointers {
  private readonly down = new Map<number, Point>();
  private drag: Drag | undefined;
  private pinch: { distance: number; middle: number } | undefined;

  constructor(
    private readonly element: HTMLElement,
    private readonly scene: Scene,
    private readonly store: Store,
    private readonly hooks: InputHooks,
  ) {}

  get dragging(): boolean {
    return this.drag !== undefined;
  }

  place(event: MouseEvent): Point {
    const box = this.element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  onDown(event: PointerEvent): void {
    if (event.button > 1) return;
    const at = this.place(event);
    this.element.setPointerCapture(event.pointerId);
    this.element.focus({ preventScroll: true });
    this.down.set(event.pointerId, at);
    if (this.down.size === 2) {
      this.pinch = this.fingers();
      this.drag = undefined;
      return;
    }
    const { state } = this.store;
    const edge = at.y < RULER + 24 ? this.edgeAt(at.x) : undefined;
    const measuring = at.y < RULER || event.shiftKey || state.measuring;
    this.drag = {
      mode: edge ? "edge" : measuring && event.button === 0 ? "range" : "pan",
      ...at,
      moved: false,
      from: edge && state.range ? (edge === "begin" ? state.range.end : state.range.begin) : this.snapped(at),
      begin: state.view.begin,
      scroll: this.scene.scrollNow(),
    };
  }

  onMove(event: PointerEvent): void {
    const at = this.place(event);
    if (this.down.has(event.pointerId)) this.down.set(event.pointerId, at);
    if (this.pinch && this.down.size === 2) this.stretch(this.pinch);
    else if (this.drag) this.dragTo(this.drag, at);
    else this.hover(at);
  }

  onUp(event: PointerEvent): void {
    this.down.delete(event.pointerId);
    if (this.down.size < 2) this.pinch = undefined;
    const ended = this.drag;
    this.drag = undefined;
    this.element.style.cursor = "default";
    if (!ended || event.type === "pointercancel") return;
    if (ended.moved) {
      if (ended.mode !== "pan" && this.store.state.range) this.store.set({ tab: "range", dockOpen: true });
      return;
    }
    const said = noteAt(this.scene, this.store.state, ended.x, ended.y);
    const hit = this.scene.sliceHit(ended.x, ended.y);
    if (said) this.clickNote(said);
    else if (hit) this.click(hit, event.ctrlKey || event.metaKey);
    else if (ended.y < RULER) this.store.set({ range: null });
    else deselect();
  }

  /** A right click selects the call and tells what one can do with it. Elsewhere the browser has its own menu. */
  onMenu(event: MouseEvent): void {
    const { x, y } = this.place(event);
    const hit = this.scene.sliceHit(x, y);
    if (!hit || hit.info.kind !== "thread" || hit.row.flags[hit.at]! & kSummed) return;
    event.preventDefault();
    this.hooks.pointer(undefined);
    this.click(hit, false);
    if (this.store.state.selected?.index === hit.row.index[hit.at])
      this.store.set({ menu: { x: event.clientX, y: event.clientY } });
  }

  private fingers(): { distance: number; middle: number } {
    const [a, b] = [...this.down.values()] as [Point, Point];
    return { distance: Math.max(10, Math.hypot(a.x - b.x, a.y - b.y)), middle: (a.x + b.x) / 2 };
  }

  private stretch(before: { distance: number; middle: number }): void {
    const { scene, store } = this;
    const now = this.fingers();
    const { view } = store.state;
    const moved = { begin: view.begin - ((now.middle - before.middle) / scene.width) * view.span, span: view.span };
    setView(zoom(moved, before.distance / now.distance, now.middle / scene.width, store.total));
    this.pinch = now;
  }

  private dragTo(drag: Drag, at: Point): void {
    const { element, scene, store, hooks } = this;
    if (!drag.moved && Math.hypot(at.x - drag.x, at.y - drag.y) < CLICK) return;
    drag.moved = true;
    if (drag.mode === "pan") {
      element.style.cursor = "grabbing";
      const { view } = store.state;
      setView({ begin: drag.begin - ((at.x - drag.x) / scene.width) * view.span, span: view.span });
      store.set({ scroll: Math.min(scene.mostScroll, Math.max(0, drag.scroll - (at.y - drag.y))) });
      hooks.pointer(undefined);
    } else {
      const to = this.snapped(at);
      store.set({ range: { begin: Math.min(drag.from, to), end: Math.max(drag.from, to) } });
      hooks.pointer(at);
    }
  }

  private hover(at: Point): void {
    this.hooks.pointer(at);
    const onEdge = at.y < RULER + 24 && this.edgeAt(at.x);
    const measures = at.y < RULER || this.store.state.measuring;
    this.element.style.cursor = onEdge ? "ew-resize" : measures ? "crosshair" : "default";
  }

  private click(hit: SliceHit, all: boolean): void {
    const { row, at, begin, pixelNs, info } = hit;
    if (row.flags[at]! & kSummed) {
      // Several in a pixel: show them instead of picking one.
      const middle = begin + row.duration[at]! / 2;
      moveTo(fit(middle - pixelNs, middle + pixelNs, this.store.total));
    } else {
      kindOf(info.kind)?.click?.(hit, all);
    }
  }

  private clickNote({ mark, bucketNs, place }: NoteHit & { place: Placed }): void {
    const { trace } = place.track;
    const begin = Math.floor(mark.time / bucketNs) * bucketNs + this.scene.offset(trace);
    if (mark.count > 1 && bucketNs > NARROWEST_NS) moveTo(fit(begin, begin + bucketNs, this.store.total));
    else selectNote(trace, mark);
  }

  /** The end of a call near the pointer, so that ranges are easily exact. */
  private snapped({ x, y }: Point): number {
    const { scene, store } = this;
    const near = SNAP * (store.state.view.span / scene.width);
    const at = toTime(store.state.view, x, scene.width);
    for (const dx of [0, -SNAP, SNAP]) {
      const hit = scene.hit(x + dx, y);
      if (!hit || hit.flags & kSummed) continue;
      for (const end of [hit.begin, hit.begin + hit.duration]) if (Math.abs(end - at) <= near) return end;
    }
    return at;
  }

  private edgeAt(x: number): "begin" | "end" | undefined {
    const { range, view } = this.store.state;
    if (!range) return undefined;
    const px = (ns: number) => ((ns - view.begin) / view.span) * this.scene.width;
    if (Math.abs(px(range.begin) - x) <= 4) return "begin";
    return Math.abs(px(range.end) - x) <= 4 ? "end" : undefined;
  }
}

function onWheel(event: WheelEvent, x: number, scene: Scene, store: Store): void {
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 400 : 1;
  const dx = event.deltaX * unit;
  const dy = event.deltaY * unit;
  const { view } = store.state;
  if (event.shiftKey && !event.ctrlKey) {
    // Browsers turn Shift and wheel into a sideways wheel.
    store.set({ scroll: Math.min(scene.mostScroll, Math.max(0, scene.scrollNow() + (dy || dx))) });
  } else if (Math.abs(dx) > Math.abs(dy)) {
    setView({ begin: view.begin + (dx / scene.width) * view.span, span: view.span });
  } else {
    // A pinch comes as a wheel with Ctrl, in small steps.
    const factor = Math.exp(Math.min(Math.max(dy, -240), 240) * (event.ctrlKey ? 0.01 : 0.0022));
    setView(zoom(view, factor, x / scene.width, store.total));
  }
}

export function attachInput(element: HTMLElement, scene: Scene, store: Store, hooks: InputHooks): () => void {
  const controller = new AbortController();
  const options = { signal: controller.signal };
  const pointers = new Pointers(element, scene, store, hooks);
  const up = (event: PointerEvent) => pointers.onUp(event);
  const double = (event: MouseEvent) => {
    const { x, y } = pointers.place(event);
    const hit = scene.hit(x, y);
    if (hit) moveTo(fit(hit.begin, hit.begin + hit.duration, store.total));
  };
  element.addEventListener("pointerdown", (event) => pointers.onDown(event), options);
  element.addEventListener("pointermove", (event) => pointers.onMove(event), options);
  element.addEventListener("pointerup", up, options);
  element.addEventListener("pointercancel", up, options);
  element.addEventListener("pointerleave", () => !pointers.dragging && hooks.pointer(undefined), options);
  element.addEventListener("dblclick", double, options);
  element.addEventListener("contextmenu", (event) => pointers.onMenu(event), options);
  const wheel = (event: WheelEvent) => onWheel(event, pointers.place(event).x, scene, store);
  element.addEventListener("wheel", wheel, { passive: false, signal: controller.signal });
  element.addEventListener("auxclick", (event) => event.preventDefault(), options);
  return () => controller.abort();
}
