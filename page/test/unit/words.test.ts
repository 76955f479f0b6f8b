import { describe, expect, test } from "vitest";
import { callFacts, histogramFacts, traceFacts } from "../../src/backend/facts";
import { keptGroups } from "../../src/panels/missing";
import { recordedWords, sentence } from "../../src/model/words";
import type { Backend } from "../../src/backend/types/backend";

const info = traceFacts({ functions: { name: ["serve(int)", "Pool::Handle(Job&)", "work()"] } });
const trace = { number: 0, info, backend: {} as Backend };
const plain = (text: string) => text.replace(/\u202f/g, " ");
const usual = histogramFacts({ calls: 50, p50: 2e6 });
const wait = { begin: 1, duration: 18e6, state: "blocked", where: "futex", by: "4711 worker-0" };

test("what is in the times of a page", () => {
  const words = (...costs: number[]) =>
    recordedWords(traceFacts({ processes: costs.map((ns) => ({ call_cost: ns })) }));
  expect(words(0)).toBe("as recorded");
  expect(words(13.2, 0)).toBe("as recorded, tracing’s 13 ns a call included");
  expect(words(13.2, 17.9)).toBe("as recorded, tracing’s 13 to 18 ns a call included");
});

describe("the sentence of a call", () => {
  const say = (call: object, histogram = usual) => plain(sentence(trace, callFacts(call), histogram));
  test("how many times the usual, what it waited for, and for whom", () => {
    const waits = [
      { ...wait, duration: 1e6 },
      { ...wait, waker: { thread: 1, index: 5, function: 1, depth: 2 } },
    ];
    expect(say({ duration: 24e6, took: 24e6, waits })).toBe(
      "Took 12× the usual 2.000 ms; waited 18.00 ms in futex for worker-0 in Pool::Handle.",
    );
  });
  test("who had the CPU that it waited for", () => {
    const shares = [
      { name: "12 worker-0", duration: 17e6, thread: 1, function: 1 },
      { name: "14 worker-1", duration: 1e6 },
    ];
    const off = { begin: 1, duration: 18e6, state: "preempted", by: "14 worker-1" };
    const told = (kept_off_by: object[]) => say({ duration: 24e6, took: 24e6, waits: [{ ...off, kept_off_by }] });
    expect(told(shares)).toBe(
      "Took 12× the usual 2.000 ms; waited 18.00 ms for a CPU that mostly worker-0 had in Pool::Handle.",
    );
    expect(told([{ name: "99 hog", duration: 18e6 }])).toBe(
      "Took 12× the usual 2.000 ms; waited 18.00 ms for a CPU that hog had.",
    );
    expect(told([])).toBe("Took 12× the usual 2.000 ms; waited 18.00 ms for a CPU.");
  });
  test("without what tracing took", () => {
    const functions = [{ function: 2, calls: 1, total: 3e6 }];
    const call = { duration: 10e6, took: 4.5e6, self: 0.5e6, children: 1001, callees: functions };
    expect(say(call)).toBe("Took 2.3× the usual 2.000 ms; 66.7% of it in work.");
    const own = { duration: 8e6, took: 4e6, self: 4e6, children: 1 };
    expect(say(own)).toBe("Took 2.0× the usual 2.000 ms; 100% of it in itself.");
  });
  test("on a CPU, and where", () => {
    const calls = { children: 1, callees: [{ function: 2, calls: 1, total: 5e6 }] };
    expect(say({ took: 6e6, states: { cpu: 6e6 }, ...calls })).toBe(
      "Took 3.0× the usual 2.000 ms; 100% of it on a CPU; 83.3% of it in work.",
    );
  });
  test("nothing is said to be usual of a function that was called a few times", () => {
    expect(say({ took: 6e6 }, histogramFacts({ calls: 9, p50: 2e6 }))).toBe("Took 6.000 ms.");
    expect(say({ took: 2.1e6 })).toBe("Took 2.100 ms, as usual (2.000 ms).");
  });
});

test("kept moments: the slowest first, those that overlap in a thread together", () => {
  const moment = (number: number, thread: number, begin: number, end: number) => ({ number, thread, begin, end });
  const moments = [moment(1, 0, 10, 20), moment(2, 0, 15, 40), moment(3, 1, 15, 30), moment(4, 0, 100, 101)];
  const facts = traceFacts({ processes: [{ moments }] });
  const numbers = keptGroups([{ info: facts }]).map((group) => group.moments.map(({ number }) => number));
  expect(numbers).toEqual([[2, 1], [3], [4]]);
});
