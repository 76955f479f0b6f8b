// SPDX-License-Identifier: MIT
// From a thread that waits for a lock to the one that has it: a line between their calls. In the lock's own track what
// is selected has a frame.
import { lockLines, type LockEnd } from "../model/locks";
import { visible } from "../model/names";
import type { State } from "../model/store";
import { threadKey } from "../model/tracks";
import { drawArrow, drawArrowLabel, middleOf } from "./arrows";
import { RULER, type Placed, type Scene } from "./scene";
import { laneOfLock } from "./track_locks";

const EDGE = 12; // from the edge of the screen, where an end lies beyond it

type Lock = NonNullable<State["lock"]>;

const toX = (scene: Scene, { view }: State, ns: number) => ((ns - view.begin) / view.span) * scene.width;

export function drawLock(c: CanvasRenderingContext2D, scene: Scene, state: State, lock: Lock): void {
  const { width, height } = scene;
  const lines = lockLines(lock.facts);
  const placed = scene.placed();
  const order = scene.layout().scrolled.map((track) => track.key);
  /** Its height on screen; beyond it the edge on that side. */
  const yOf = ({ thread, depth }: LockEnd, other: LockEnd): { y: number; seen: boolean; below: boolean } => {
    const key = threadKey(lock.trace, thread);
    const place = placed.find((p) => p.track.key === key);
    if (place) return { y: middleOf(place, depth), seen: true, below: false };
    const below = order.indexOf(key) > order.indexOf(threadKey(lock.trace, other.thread));
    return { y: below ? height - EDGE : RULER + scene.pinnedShown + EDGE, seen: false, below };
  };
  c.save();
  c.beginPath();
  c.rect(0, RULER, width, height - RULER);
  c.clip();
  let named = false;
  for (const { at, from, to } of lines) {
    const x = toX(scene, state, at + scene.offset(lock.trace));
    const a = yOf(from, to);
    const b = yOf(to, from);
    if (x < 0 || x > width || (!a.seen && !b.seen)) continue;
    drawArrow(c, x, a.y, b.y, scene.inks.text);
    // Many waits for one holder are told once.
    if (!named) drawArrowLabel(c, scene, x, (a.y + b.y) / 2, ownerWords(state, lock, to, b));
    named = true;
  }
  frames(c, scene, state, lock, placed);
  c.restore();
}

function ownerWords(state: State, lock: Lock, to: LockEnd, end: { seen: boolean; below: boolean }): string {
  const thread = state.traces[lock.trace]?.info.threads[to.thread];
  const who = visible(thread ? `${thread.name || "thread"} ${thread.tid}` : "");
  return end.seen ? `${who} has it` : `${who} has it, ${end.below ? "below" : "above"}`;
}

/** Around what is selected, in the lock's track. */
function frames(
  c: CanvasRenderingContext2D,
  scene: Scene,
  state: State,
  { trace, facts }: Lock,
  placed: readonly Placed[],
): void {
  const place = placed.find(
    ({ track }) => track.kind === "lock" && track.trace === trace && track.info?.owner === facts.lock,
  );
  const of = facts.wait ?? facts.held;
  if (!place?.track.info || of?.lane == null) return;
  const at = laneOfLock(place.track.info, of.lane);
  const x0 = Math.max(-4, toX(scene, state, of.begin + scene.offset(trace)));
  const x1 = Math.min(scene.width + 4, toX(scene, state, of.begin + of.duration + scene.offset(trace)));
  if (x1 < 0 || x0 > scene.width) return;
  const top = RULER + scene.pinnedShown;
  c.beginPath();
  if (place.pinned) c.rect(0, RULER, scene.width, scene.pinnedShown);
  else c.rect(0, top, scene.width, scene.height - top);
  c.clip();
  c.strokeStyle = scene.inks.text;
  c.lineWidth = 2;
  const x = toX(scene, state, of.begin + scene.offset(trace));
  if (facts.wait && facts.owner && x >= 0) {
    // Up to who has it, whose threads may be far away.
    const holder = laneOfLock(place.track.info, 0);
    c.beginPath();
    c.moveTo(x, place.top + 2 + at.y + at.height / 2);
    c.lineTo(x, place.top + 2 + holder.y + holder.height - 4);
    c.stroke();
    c.fillStyle = scene.inks.text;
    c.beginPath();
    c.arc(x, place.top + 2 + holder.y + holder.height - 4, 3.5, 0, 7);
    c.fill();
  }
  c.strokeRect(x0, place.top + 2 + at.y - 0.5, Math.max(2, x1 - x0), at.height + 1);
}
