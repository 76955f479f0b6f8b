// SPDX-License-Identifier: MIT
// How a call ended, in words.
import { kCut, kJumped, kLeft, kOpenBegin, kOpenEnd, kTailCall, kUnwound } from "../backend/types/tiles";

/** Words for how a call's ends are known; empty for an ordinary call. */
export function endings(flags: number): string[] {
  const words: string[] = [];
  if (flags & kOpenBegin) words.push("begin not known");
  const cut = (flags & kCut) === kCut;
  if (cut) words.push("switched off while it ran: end not known");
  else if (flags & kOpenEnd) words.push("end not known");
  if (flags & kUnwound) words.push("left by an exception");
  const left = (flags & kLeft) === kLeft;
  if (left) words.push("left by a tail call: what that called is not in its time");
  if (flags & kJumped && !left) words.push("left by longjmp");
  if (flags & kTailCall && !cut && !left) words.push("ended with a tail call");
  return words;
}
