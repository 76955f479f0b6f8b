// Answers about frames to the page's own types.
import { histogramFacts, num, object, objects, text, type Json } from "./facts";
import type { FrameFacts, FrameLine, FrameList } from "./types/frames";

export function frameList(answer: Json): FrameList {
  const json = object(answer);
  return {
    sets: objects(json.frames).map((set) => ({
      ...{ track: num(set.track, -1), process: num(set.process), name: text(set.name), count: num(set.count) },
    })),
    more: num(json.more),
  };
}

const frameLine = (json: Json): FrameLine => ({
  ...{ number: num(json.number), begin: num(json.begin), duration: num(json.duration), marked: json.marked !== false },
});

export function frameFacts(answer: Json): FrameFacts {
  const json = object(answer);
  const one = (value: Json) => (value ? frameLine(object(value)) : null);
  return {
    ...{ over: num(json.over), durations: histogramFacts(object(json.durations)) },
    slowest: objects(json.slowest).map(frameLine),
    ...{ frame: one(json.frame), previous: one(json.previous), next: one(json.next) },
  };
}
