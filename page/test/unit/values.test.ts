// Values of calls: as words, behind names, and asked for no more often than needed.
import { describe, expect, test } from "vitest";
import { callFacts, callValues, hasValues } from "../../src/backend/facts";
import type { Backend } from "../../src/backend/types/backend";
import type { CallValues } from "../../src/backend/types/calls";
import { askValues, callKey, ValueStore, valueWords } from "../../src/model/values";
import { fittedWith } from "../../src/timeline/frame";

const one = (name: string, text: string) => ({ name, text });
const values = (index: number): CallValues => ({ arguments: [one("n", String(index))], returned: [] });

test("facts have what is noted, and nothing where nothing is", () => {
  const given = { arguments: [one("n", "7")], returned: [one("", "8")] };
  expect(callFacts({ index: 3, ...given })).toMatchObject(given);
  expect(hasValues(callFacts({ index: 3 }))).toBe(false);
  expect([...callValues({ calls: [{ index: 3, ...given }, { index: 4 }] })]).toEqual([[3, { index: 3, ...given }]]);
});

test("words are those of karst tree, behind a name", () => {
  const path = one("path", '"/etc"');
  expect(valueWords({ arguments: [path, one("flags", "0")], returned: [one("", "3")] })).toBe(
    '(path="/etc", flags=0) = 3',
  );
  expect(valueWords({ arguments: [path], returned: [] })).toBe('(path="/etc")');
  expect(valueWords({ arguments: [], returned: [one("x", "1"), one("y", "2")] })).toBe(" = {x=1, y=2}");
  expect(valueWords({ arguments: [one("s", '"\u202e\u009b"')], returned: [] })).toBe('(s="\\u{202e}\\x9b")');
});

test("they go behind the longest form that leaves room, and are cut behind the shortest", () => {
  const r = { textWidth: (text: string) => text.length * 6 };
  const fit = (room: number) => fittedWith(r, ["a::b::open", "b::open", "open"], '(path="/etc/passwd")', room);
  expect(fit(200)).toBe('a::b::open(path="/etc/passwd")');
  expect(fit(170)).toBe('b::open(path="/etc/passwd")');
  expect(fit(120)).toBe('open(path="/etc/pas…');
  expect(fit(80)).toMatch(/^open\(path="/);
  expect(fit(50)).toBe("b::open");
});

describe("questions", () => {
  const asked: [number, readonly number[]][] = [];
  const backend = {
    values: async (thread: number, indices: readonly number[]) => {
      asked.push([thread, indices]);
      return new Map(indices.filter((i) => i % 2 === 0).map((i) => [i, values(i)]));
    },
  } as unknown as Backend;

  test("are one a thread, of 500 calls at most", async () => {
    asked.length = 0;
    const calls = Array.from({ length: 1200 }, (_, index) => ({ thread: index % 2, index }));
    const found = await askValues(backend, calls);
    expect(asked.map(([thread, indices]) => [thread, indices.length])).toEqual([
      [0, 500],
      [0, 100],
      [1, 500],
      [1, 100],
    ]);
    expect(found.get(callKey({ thread: 0, index: 4 }))).toEqual(values(4));
    expect(found.size).toBe(600);
  });

  test("are asked once, in one go, and their answers make one new picture", async () => {
    asked.length = 0;
    let changes = 0;
    const store = new ValueStore(backend, () => ++changes);
    const look = () => [1, 2, 3, 4].map((index) => store.of({ thread: 0, index }));
    expect(look()).toEqual([undefined, undefined, undefined, undefined]);
    look();
    expect(store.complete).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(store.complete).toBe(true);
    expect(changes).toBe(1);
    expect(look()).toEqual([undefined, values(2), undefined, values(4)]);
    expect(asked).toEqual([[0, [1, 2, 3, 4]]]);
    expect(store.complete).toBe(true);
  });

  test("that fail are not asked again", async () => {
    let fails = 0;
    const broken = { values: () => (++fails, Promise.reject(new Error("gone"))) } as unknown as Backend;
    const store = new ValueStore(broken, () => {});
    for (let i = 0; i < 3; ++i) {
      store.of({ thread: 0, index: 1 });
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    expect(fails).toBe(1);
  });
});
