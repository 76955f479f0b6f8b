import { describe, expect, test } from "vitest";
import { kJumped, kOpenBegin, kOpenEnd, kTailCall, kUnwound } from "../../src/backend/types/tiles";
import { endings } from "../../src/timeline/endings";

describe("how a call ended", () => {
  test("each mark has its words", () => {
    expect(endings(0)).toEqual([]);
    expect(endings(kUnwound)).toEqual(["left by an exception"]);
    expect(endings(kJumped)).toEqual(["left by longjmp"]);
    expect(endings(kTailCall)).toEqual(["ended with a tail call"]);
    expect(endings(kTailCall | kJumped)).toEqual(["left by a tail call: what that called is not in its time"]);
    expect(endings(kOpenEnd)).toEqual(["end not known"]);
  });
  test("a call may have begun before what is kept", () => {
    expect(endings(kOpenBegin | kUnwound)).toEqual(["begin not known", "left by an exception"]);
  });
});
