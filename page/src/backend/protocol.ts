// What the page shares with engine/protocol.h, reader/model.h and format/note_kinds.h. Made of them by docs_test,
// which fails when they differ; KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file
// anew.

/** Of all answers; the page refuses others. */
export const PROTOCOL_VERSION = 1;

/** First word of tiles. */
export const TILES_MAGIC = 0x4c49544b;

/** First word of a minimap. */
export const MINIMAP_MAGIC = 0x504d4d4b;

/** In a column of parents: none. */
export const kNoParent = 0xffffffff;

/** Flag of a call: its begin is not known. */
export const kOpenBegin = 1;

/** Flag of a call: its end is not known. */
export const kOpenEnd = 2;

/** Flag of a call: an exception ended it. */
export const kUnwound = 4;

/** Flag of a call: a longjmp ended it. */
export const kJumped = 8;

/** Flag of a call: a tail call ended it. */
export const kTailCall = 16;

/** Flag of a call: it goes on, on a stack that came back. */
export const kResumed = 32;

/** Flag of a call: it was open when its process was forked. */
export const kInherited = 128;

/** Flag of a slice: it stands for several calls. */
export const kSummed = 128;

/** Both bits: a tail call's jump left the call; what that called is beside it. */
export const kLeft = 24;

/** Both bits: the call's function was switched off while it ran. */
export const kCut = 18;

/** What people choose among in a list of notes. */
export const NOTE_GROUPS = [
  "message",
  "value",
  "frame",
  "request",
  "text",
  "record",
  "picture",
  "other",
  "call",
  "color",
] as const;
