// Answers about frames to the page's own types.
import { histogramFacts, num, object, objects, optional, says, text, type Json } from "./facts";
import type { LateList } from "./types/late";
import type { FrameFacts, FrameLine, FrameList, FramePicture } from "./types/frames";

export function frameList(answer: Json): FrameList {
  const json = object(answer);
  return {
    sets: objects(json.frames).map((set) => ({
      ...{ track: num(set.track, -1), process: num(set.process), name: text(set.name), count: num(set.count) },
    })),
    more: num(json.more),
  };
}

export const FRAMES: LateList<FrameList> = { path: "frames", read: frameList, has: (info) => says(info, "frame") };

const frameLine = (json: Json): FrameLine => ({
  ...{ number: num(json.number), begin: num(json.begin), duration: num(json.duration), marked: json.marked !== false },
});

const MOST_PIXELS = 16384;

/** Nothing where the words are not as many as the pixels need. */
function pictureFacts(value: unknown): FramePicture | undefined {
  const json = object(value);
  const [width, height] = [num(json.width), num(json.height)];
  const words = Uint32Array.from(Array.isArray(json.words) ? json.words.map((word) => num(word)) : []);
  const blocks = (width / 4) * (height / 4);
  return Number.isInteger(blocks) && blocks > 0 && width * height <= MOST_PIXELS && words.length === 2 * blocks
    ? { width, height, words }
    : undefined;
}

export function frameFacts(answer: Json): FrameFacts {
  const json = object(answer);
  const one = (value: Json) => (value ? frameLine(object(value)) : null);
  return {
    ...{ over: num(json.over), durations: histogramFacts(object(json.durations)) },
    slowest: objects(json.slowest).map(frameLine),
    ...{ frame: one(json.frame), previous: one(json.previous), next: one(json.next) },
    ...optional("picture", pictureFacts(json.picture)),
  };
}
