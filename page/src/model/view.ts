// SPDX-License-Identifier: MIT
// What part of time the timeline shows, and how moving and zooming change it. Pure functions.

/** A window on time: `begin` ns at the left edge, `span` ns wide. */
export interface View {
  readonly begin: number;
  readonly span: number;
}

/** The limits of a view: the trace's span, and the narrowest useful window. */
export const NARROWEST_NS = 20;
/** How much of the window may lie beside the trace: enough to bring either end to the middle. */
const BESIDE = 0.5;

export function clampView(view: View, total: number): View {
  const widest = Math.max(total * 1.1, NARROWEST_NS);
  const span = Math.min(Math.max(view.span, NARROWEST_NS), widest);
  const least = -span * BESIDE;
  const most = Math.max(least, total - span * (1 - BESIDE));
  return { begin: Math.min(Math.max(view.begin, least), most), span };
}

/** The whole trace with a little air. */
export function wholeView(total: number): View {
  const air = Math.max(total, NARROWEST_NS) * 0.01;
  return { begin: -air, span: Math.max(total, NARROWEST_NS) + 2 * air };
}

/** Zooms by `factor` (below 1: closer); the moment at share `at` (0..1) of the window stays where it is. */
export function zoom(view: View, factor: number, at: number, total: number): View {
  const span = Math.min(Math.max(view.span * factor, NARROWEST_NS), Math.max(total * 1.1, NARROWEST_NS));
  return clampView({ begin: view.begin + (view.span - span) * at, span }, total);
}

/** Moves by a share of the window. */
export function pan(view: View, share: number, total: number): View {
  return clampView({ begin: view.begin + view.span * share, span: view.span }, total);
}

/** A window in which [begin, end] takes four fifths. */
export function fit(begin: number, end: number, total: number): View {
  const length = Math.max(end - begin, NARROWEST_NS * 0.4);
  const span = length / 0.8;
  return within({ begin: (begin + end) / 2 - span / 2, span }, total);
}

/** A window in which [begin, end] takes a third, in the middle: with what came before and after. */
export function fitThird(begin: number, end: number, total: number): View {
  const span = Math.max(end - begin, NARROWEST_NS / 3) * 3;
  return within({ begin: (begin + end) / 2 - span / 2, span }, total);
}

/** Moved so that little of the window lies beside the trace. */
function within(view: View, total: number): View {
  const span = clampView(view, total).span;
  const air = span * 0.02;
  if (span >= total) return { begin: (total - span) / 2, span };
  return { begin: Math.min(Math.max(view.begin, -air), total - span + air), span };
}

/** The same zoom, moved as little as needed so that [begin, end] is seen; centred when it was far away. */
export function reveal(view: View, begin: number, end: number, total: number): View {
  const length = end - begin;
  if (length > view.span * 0.9) return fit(begin, end, total);
  // A call of less than some pixels would be found, but not seen.
  if (length < view.span / 400) return fit(begin - length * 20, end + length * 20, total);
  if (begin >= view.begin && end <= view.begin + view.span) return view;
  return within({ begin: (begin + end) / 2 - view.span / 2, span: view.span }, total);
}

/** Where `ns` lies in a picture of `width` pixels. */
export function toPixel(view: View, ns: number, width: number): number {
  return ((ns - view.begin) / view.span) * width;
}

export function toTime(view: View, pixel: number, width: number): number {
  return view.begin + (pixel / width) * view.span;
}

/** Between two views, for animation: spans go geometrically, so that zooming looks steady. */
export function between(from: View, to: View, share: number): View {
  if (share >= 1) return to;
  const span = from.span * (to.span / from.span) ** share;
  // The fixed point of the zoom stays in place; for equal spans this is a straight move.
  const shrink = from.span - to.span;
  const along = Math.abs(shrink) < from.span * 1e-9 ? share : (from.span - span) / shrink;
  return { begin: from.begin + (to.begin - from.begin) * along, span };
}
