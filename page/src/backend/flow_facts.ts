// Answers about flows to the page's own types.
import { callOf, num, object, objects, optional, text, type Json } from "./facts";
import type { CallFlows, FlowStep } from "./types/flows";

function flowStep(answer: Json): FlowStep | null {
  if (!answer) return null;
  const json = object(answer);
  return {
    ...{ thread: num(json.thread, -1), begin: num(json.begin), end: num(json.end), gap: num(json.gap) },
    ...optional("call", callOf(json)),
  };
}

export function callFlows(answer: Json): CallFlows {
  const json = object(answer);
  return {
    count: num(json.count),
    flows: objects(json.flows).map((flow) => ({
      ...{ name: text(flow.name), coroutine: flow.coroutine === true, ended: flow.ended === true },
      ...{ step: num(flow.step, 1), steps: num(flow.steps, 1), begin: num(flow.begin), end: num(flow.end) },
      ...{ before: flowStep(flow.before), after: flowStep(flow.after) },
    })),
  };
}
