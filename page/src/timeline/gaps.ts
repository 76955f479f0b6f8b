// SPDX-License-Identifier: MIT
// Where nothing, or not all, is known of a thread, and what of it was kept: how that is drawn, and what of it lies under
// a point. Each kind of gap has a pattern of its own, so that they are told apart without colour.
import type { Gap, MomentInfo } from "../backend/types/trace";
import type { State } from "../model/store";
import { gapWords, leftOut, leftOutWords, momentWords, offStretches, offWords, type LeftOut } from "../model/switches";
import { STRIP_AIR } from "../model/tracks";
import { forms, visible } from "../model/names";
import { SMALL, type Hatch, type Renderer } from "./renderer";
import type { Placed, Scene } from "./scene";

export type GapHit =
  | { readonly kind: Gap["kind"]; readonly begin: number; readonly end: number; readonly blocks: number }
  | { readonly kind: "off"; readonly begin: number; readonly end: number; readonly reason: string }
  | { readonly kind: "left out"; readonly begin: number; readonly end: number; readonly of: LeftOut }
  | { readonly kind: "kept"; readonly begin: number; readonly end: number; readonly moment: MomentInfo };

const FLAG = 14; // height of a kept call's flag

const HATCHES = { overwritten: "rising", missing: "crossed", off: "falling" } as const;

interface Where {
  /** Times of the trace to pixels. */
  x(ns: number): number;
  readonly top: number;
  readonly height: number;
}

function where(r: { width: number }, scene: Scene, state: State, { track, top }: Placed): Where {
  const offset = scene.offset(track.trace);
  const { begin, span } = state.view;
  return { x: (ns) => ((ns + offset - begin) / span) * r.width, top, height: track.height - 1 };
}

/** The pixels of [begin, end] that are on screen. */
function seen(at: Where, width: number, begin: number, end: number): [number, number] | undefined {
  const from = Math.max(-2, at.x(begin));
  const to = Math.min(width + 2, at.x(end));
  return to < 0 || from > width || to < from ? undefined : [from, Math.max(1, to - from)];
}

function block(r: Renderer, scene: Scene, at: Where, x: number, width: number, kind: Hatch, text: string): void {
  const { inks } = scene;
  r.rect(x, at.top, width, at.height, inks.gapGround);
  r.hatch(x, at.top, width, at.height, kind === "crossed" ? inks.lost : inks.gapLine, kind);
  const textWidth = r.textWidth(text, SMALL);
  if (width <= textWidth + 16) return;
  // On a ground of its own: letters between slanted lines are hard to read.
  r.rect(x + 4, at.top + at.height / 2 - 7, textWidth + 8, 14, inks.gapGround);
  r.text(text, x + 8, at.top + at.height / 2 + 0.5, inks.quiet, SMALL);
}

/** Below the calls: stretches of which nothing is known. */
export function drawGaps(r: Renderer, scene: Scene, state: State, place: Placed): void {
  const info = state.traces[place.track.trace]!.info;
  const thread = info.threads[place.track.thread]!;
  const at = where(r, scene, state, place);
  for (const gap of thread.gaps) {
    const part = seen(at, r.width, gap.begin, gap.end);
    if (part) block(r, scene, at, ...part, HATCHES[gap.kind], gapWords(gap.kind));
  }
  const process = info.processes[thread.process];
  if (!process || process.switches.length === 0) return;
  for (const { begin, end, reason } of offStretches(process, thread.begin, thread.end)) {
    if (begin > thread.end || end < thread.begin) continue;
    const part = seen(at, r.width, Math.max(begin, thread.begin), Math.min(end, thread.end));
    if (part) block(r, scene, at, ...part, HATCHES.off, offWords(reason));
  }
  drawLeftOut(r, scene, state, place, at);
}

const nameIn = (state: State, trace: number) => (func: number) =>
  visible(forms(state.traces[trace]!.info.functions[func]?.name ?? "?").at(-1)!);

/** A lane above the calls: while some functions were not traced. */
function drawLeftOut(r: Renderer, scene: Scene, state: State, { track, top }: Placed, at: Where): void {
  if (track.lane === 0) return;
  const { inks } = scene;
  const info = state.traces[track.trace]!.info;
  const thread = info.threads[track.thread]!;
  const y = top + 2 + track.lead - track.lane;
  const height = track.lane - STRIP_AIR;
  for (const one of leftOut(info.processes[thread.process]!, 0, info.extent)) {
    const part = seen(at, r.width, Math.max(one.begin, thread.begin), Math.min(one.end, thread.end));
    if (!part || one.begin > thread.end || one.end < thread.begin) continue;
    const [x, width] = part;
    r.rect(x, y, width, height, inks.leftOutGround);
    r.hatch(x, y, width, height, inks.leftOut, "dotted");
    r.rect(x, y, 1, height, inks.leftOutText);
    if (height < 10) continue;
    const long = leftOutWords(one, nameIn(state, track.trace));
    const from = Math.max(x, 0);
    const room = Math.min(x + width, r.width) - from - 14;
    const text = [long, long.split(":")[0]!].find((words) => r.textWidth(words, SMALL) <= room);
    if (text === undefined) continue;
    r.rect(from + 3, y, r.textWidth(text, SMALL) + 8, height, inks.leftOutGround);
    r.text(text, from + 7, y + height / 2 + 0.5, inks.leftOutText, SMALL);
  }
}

/** A snapshot is of all threads. */
const isOf = (moment: MomentInfo, thread: number) => moment.thread < 0 || moment.thread === thread;

/** What was kept: a line over the call, a flag where it ended. */
export function drawMoments(r: Renderer, scene: Scene, state: State, place: Placed): void {
  const { track, top } = place;
  const { inks } = scene;
  const info = state.traces[track.trace]!.info;
  const { moments } = info.processes[track.process] ?? { moments: [] };
  const at = where(r, scene, state, place);
  const first = info.threads.findIndex((thread) => thread.process === track.process);
  // Flags that would cover another one stand above it: a call may be kept for two reasons.
  const free: number[] = new Array<number>(Math.max(1, Math.floor((track.height - track.lead) / FLAG))).fill(0);
  for (const moment of moments) {
    if (!isOf(moment, track.thread)) continue;
    const x0 = Math.max(-4, at.x(moment.begin));
    const x1 = Math.min(r.width + 4, at.x(moment.end));
    if (x1 < -2 || x0 > r.width + 2) continue;
    r.rect(x0, top, Math.max(2, x1 - x0), 2, inks.accent);
    r.rect(x1 - 1, top, 2, at.height, inks.accent);
    const text = momentWords(moment);
    const width = r.textWidth(text, SMALL) + 8;
    const left = x1 + width > r.width ? x1 - width : x1;
    if (moment.thread < 0 && track.thread !== first) continue; // its words once are enough
    const row = free.findIndex((from) => left >= from);
    if (row < 0 || left > r.width || track.height < 24) continue;
    const bottom = top + track.height - 2 - row * FLAG;
    r.rect(left, bottom - 13, width, 13, inks.accent);
    r.text(text, left + 4, bottom - 6, inks.ground, SMALL);
    free[row] = left + width + 2;
  }
}

/** The gap, or what was kept, under a point of a thread's track; the narrowest of several. */
export function gapAt(scene: Scene, state: State, x: number, y: number): GapHit | undefined {
  const place = scene.trackAt(y);
  if (!place || place.track.kind !== "thread") return undefined;
  const { track, top } = place;
  const info = state.traces[track.trace]!.info;
  const thread = info.threads[track.thread]!;
  const process = info.processes[thread.process];
  const at = where(scene, scene, state, place);
  const under = (begin: number, end: number) => at.x(begin) - 2 <= x && x <= Math.max(at.x(end), at.x(begin) + 1) + 2;
  for (const moment of process?.moments ?? []) {
    if (!isOf(moment, track.thread)) continue;
    const over = y <= top + 3 && under(moment.begin, moment.end);
    if (over || Math.abs(at.x(moment.end) - x) <= 4)
      return { kind: "kept", begin: moment.begin, end: moment.end, moment };
  }
  const lane = top + 2 + track.lead - track.lane;
  if (track.lane > 0 && y >= lane && y < lane + track.lane && x >= at.x(thread.begin) && x <= at.x(thread.end))
    for (const of of leftOut(process!, 0, info.extent))
      if (under(of.begin, of.end)) return { kind: "left out", begin: of.begin, end: of.end, of };
  for (const gap of thread.gaps) if (under(gap.begin, gap.end)) return gap;
  for (const off of process ? offStretches(process, thread.begin, thread.end) : [])
    if (under(off.begin, off.end) && off.end >= thread.begin) return { kind: "off", ...off };
  return undefined;
}
