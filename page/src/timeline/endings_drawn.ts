// SPDX-License-Identifier: MIT
// How a call ended, as shapes at its ends.
import { kCut, kJumped, kOpenBegin, kOpenEnd, kTailCall, kUnwound } from "../backend/types/tiles";
import type { Renderer } from "./renderer";
import type { Scene } from "./scene";

/** Open ends are torn; ways out other than a return have a shape of their own, so colour is not needed to tell. */
export function drawEnds(
  r: Renderer,
  scene: Scene,
  from: number,
  to: number,
  y: number,
  height: number,
  flags: number,
): void {
  const ground = scene.inks.end;
  const ink = scene.inks.onCall;
  const tear = (x: number, inward: number) => {
    const teeth = 3;
    const points = [x - inward, y - 0.5];
    for (let i = 0; i < teeth; ++i) {
      points.push(x + inward * 5, y + (height * (i + 0.5)) / teeth);
      points.push(x, y + (height * (i + 1)) / teeth + (i === teeth - 1 ? 0.5 : 0));
    }
    points.push(x - inward, y + height + 0.5);
    r.polygon(points, ground);
  };
  if (flags & kOpenBegin) tear(from, 1);
  if (flags & kOpenEnd) tear(to, -1);
  const middle = y + height / 2;
  if (to - from < 14) return;
  if (flags & kUnwound) {
    // An exception: up and out.
    r.polygon([to - 9, middle + 3.5, to - 5.5, middle - 3.5, to - 2, middle + 3.5], ink);
  } else if (flags & kJumped && !(flags & kTailCall)) {
    // longjmp: over the edge, twice.
    r.polygon([to - 10, middle - 3.5, to - 6.5, middle, to - 10, middle + 3.5], ink);
    r.polygon([to - 6, middle - 3.5, to - 2.5, middle, to - 6, middle + 3.5], ink);
  } else if (flags & kTailCall && (flags & kCut) !== kCut) {
    // A tail call: on to the next.
    r.polygon([to - 7, middle - 3.5, to - 2, middle, to - 7, middle + 3.5], ink);
  }
}
