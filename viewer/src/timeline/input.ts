// Mouse, touch and touchpad on the timeline, like a map: the wheel zooms at the pointer, dragging moves in
// time and across tracks. Dragging on the ruler, with Shift, or while measuring, marks a range.
import { deselect, moveTo, setView } from "../model/actions";
import type { Store } from "../model/store";
import { fit, toTime, zoom } from "../model/view";
import { kSummed } from "../backend/types";
import { kindOf } from "./kinds";
import { RULER, type Scene } from "./scene";
import type { SliceHit } from "./track_renderer";

const CLICK = 4; // pixels that a click may move

export interface InputHooks {
  pointer(at: { x: number; y: number } | undefined): void;
}

/** The times of a range's edges snap to calls' ends within this many pixels. */
const SNAP = 6;

export function attachInput(element: HTMLElement, scene: Scene, store: Store, hooks: InputHooks): () => void {
  const controller = new AbortController();
  const options = { signal: controller.signal };
  const pointers = new Map<number, { x: number; y: number }>();
  let drag:
    | {
        mode: "pan" | "range" | "edge";
        x: number;
        y: number;
        moved: boolean;
        from: number;
        begin: number;
        scroll: number;
      }
    | undefined;
  let pinch: { distance: number; middle: number } | undefined;

  const place = (event: MouseEvent) => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const time = (x: number) => toTime(store.state.view, x, scene.width);

  /** The end of a call near the pointer, so that ranges are easily exact. */
  const snapped = (x: number, y: number): number => {
    const near = SNAP * (store.state.view.span / scene.width);
    const at = time(x);
    for (const dx of [0, -SNAP, SNAP]) {
      const hit = scene.hit(x + dx, y);
      if (!hit || hit.flags & kSummed) continue;
      for (const end of [hit.begin, hit.begin + hit.duration]) if (Math.abs(end - at) <= near) return end;
    }
    return at;
  };
  const edgeAt = (x: number): "begin" | "end" | undefined => {
    const { range, view } = store.state;
    if (!range) return undefined;
    const px = (ns: number) => ((ns - view.begin) / view.span) * scene.width;
    if (Math.abs(px(range.begin) - x) <= 4) return "begin";
    return Math.abs(px(range.end) - x) <= 4 ? "end" : undefined;
  };

  const down = (event: PointerEvent) => {
    if (event.button > 1) return;
    const at = place(event);
    element.setPointerCapture(event.pointerId);
    element.focus({ preventScroll: true });
    pointers.set(event.pointerId, at);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()] as [typeof at, typeof at];
      pinch = { distance: Math.max(10, Math.hypot(a.x - b.x, a.y - b.y)), middle: (a.x + b.x) / 2 };
      drag = undefined;
      return;
    }
    const edge = at.y < RULER + 24 ? edgeAt(at.x) : undefined;
    const { range } = store.state;
    const measuring = at.y < RULER || event.shiftKey || store.state.measuring;
    drag = {
      mode: edge ? "edge" : measuring && event.button === 0 ? "range" : "pan",
      ...at,
      moved: false,
      from: edge && range ? (edge === "begin" ? range.end : range.begin) : snapped(at.x, at.y),
      begin: store.state.view.begin,
      scroll: scene.scrollNow(),
    };
  };

  const move = (event: PointerEvent) => {
    const at = place(event);
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, at);
    if (pinch && pointers.size === 2) {
      const [a, b] = [...pointers.values()] as [typeof at, typeof at];
      const distance = Math.max(10, Math.hypot(a.x - b.x, a.y - b.y));
      const middle = (a.x + b.x) / 2;
      const { view } = store.state;
      const moved = { begin: view.begin - ((middle - pinch.middle) / scene.width) * view.span, span: view.span };
      setView(zoom(moved, pinch.distance / distance, middle / scene.width, store.total));
      pinch = { distance, middle };
      return;
    }
    if (!drag) {
      hooks.pointer(at);
      element.style.cursor =
        at.y < RULER + 24 && edgeAt(at.x)
          ? "ew-resize"
          : at.y < RULER || store.state.measuring
            ? "crosshair"
            : "default";
      return;
    }
    if (!drag.moved && Math.hypot(at.x - drag.x, at.y - drag.y) < CLICK) return;
    drag.moved = true;
    if (drag.mode === "pan") {
      element.style.cursor = "grabbing";
      const { view } = store.state;
      setView({ begin: drag.begin - ((at.x - drag.x) / scene.width) * view.span, span: view.span });
      store.set({ scroll: Math.min(scene.mostScroll, Math.max(0, drag.scroll - (at.y - drag.y))) });
      hooks.pointer(undefined);
    } else {
      const to = snapped(at.x, at.y);
      store.set({ range: { begin: Math.min(drag.from, to), end: Math.max(drag.from, to) } });
      hooks.pointer(at);
    }
  };

  const up = (event: PointerEvent) => {
    pointers.delete(event.pointerId);
    if (pointers.size < 2) pinch = undefined;
    const ended = drag;
    drag = undefined;
    element.style.cursor = "default";
    if (!ended || event.type === "pointercancel") return;
    if (ended.moved) {
      if (ended.mode !== "pan" && store.state.range) store.set({ tab: "range", dockOpen: true });
      return;
    }
    const hit = scene.sliceHit(ended.x, ended.y);
    if (hit) click(hit, event.ctrlKey || event.metaKey);
    else if (ended.y < RULER) store.set({ range: null });
    else deselect();
  };

  const click = (hit: SliceHit, all: boolean) => {
    const { row, at, begin, pixelNs, info } = hit;
    if (row.flags[at]! & kSummed) {
      // Several in a pixel: show them instead of picking one.
      const middle = begin + row.duration[at]! / 2;
      moveTo(fit(middle - pixelNs, middle + pixelNs, store.total));
    } else {
      kindOf(info.kind)?.click(hit, all);
    }
  };

  const double = (event: MouseEvent) => {
    const at = place(event);
    const hit = scene.hit(at.x, at.y);
    if (hit) moveTo(fit(hit.begin, hit.begin + hit.duration, store.total));
  };

  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 400 : 1;
    const dx = event.deltaX * unit;
    const dy = event.deltaY * unit;
    const { x } = place(event);
    if (event.shiftKey && !event.ctrlKey) {
      // Browsers turn Shift and wheel into a sideways wheel.
      store.set({ scroll: Math.min(scene.mostScroll, Math.max(0, scene.scrollNow() + (dy || dx))) });
      return;
    }
    if (Math.abs(dx) > Math.abs(dy)) {
      const { view } = store.state;
      setView({ begin: view.begin + (dx / scene.width) * view.span, span: view.span });
      return;
    }
    // A pinch comes as a wheel with Ctrl, in small steps.
    const factor = Math.exp(Math.min(Math.max(dy, -240), 240) * (event.ctrlKey ? 0.01 : 0.0022));
    setView(zoom(store.state.view, factor, x / scene.width, store.total));
  };

  element.addEventListener("pointerdown", down, options);
  element.addEventListener("pointermove", move, options);
  element.addEventListener("pointerup", up, options);
  element.addEventListener("pointercancel", up, options);
  element.addEventListener("pointerleave", () => !drag && hooks.pointer(undefined), options);
  element.addEventListener("dblclick", double, options);
  element.addEventListener("wheel", wheel, { passive: false, signal: controller.signal });
  element.addEventListener("auxclick", (e) => e.preventDefault(), options);
  return () => controller.abort();
}
