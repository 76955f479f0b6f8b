import { expect, test } from "vitest";
import type { FunctionRow } from "../../src/backend/types/sums";
import { matcher, sortRows } from "../../src/model/rows";
import { highlightLines, splitLines } from "../../src/panels/highlighter";

const row = (func: number, self: number, max: number | null): FunctionRow => ({
  function: func,
  calls: 1,
  openCalls: 0,
  total: self,
  self,
  min: max,
  mean: max,
  p50: max,
  p99: max,
  max,
  cpu: null,
  runnable: null,
  blocked: null,
  selfCpu: null,
  selfRunnable: null,
  selfBlocked: null,
});
const names = ["b()", "a()", "c()"];
const rows = [row(0, 5, null), row(1, 9, 3), row(2, 7, 8)];

test("sorted either way; rows without a number last", () => {
  const order = (key: "self" | "max" | "name", up: boolean) =>
    sortRows(rows, (row) => names[row.function], key, up).map((r) => r.function);
  expect(order("self", false)).toEqual([1, 2, 0]);
  expect(order("self", true)).toEqual([0, 2, 1]);
  expect(order("max", false)).toEqual([2, 1, 0]);
  expect(order("max", true)).toEqual([1, 2, 0]);
  expect(order("name", true)).toEqual([1, 0, 2]);
});

test("filters are parts of names, or regular expressions", () => {
  expect(matcher("^b")("b()")).toBe(true);
  expect(matcher("^B")("b()")).toBe(false);
  expect(matcher("write")("DBImpl::Write")).toBe(true);
  expect(matcher("")("f(int)")).toBe(true);
  const name =
    "ns::(anonymous namespace)::Server<int>::serve(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >)";
  for (const shown of [name, "ns::Server::serve", "serve(std::string)", "SERVE", "server<INT>".toLowerCase(), "serve("])
    expect(matcher(shown)(name), shown).toBe(shown !== "SERVE");
  expect(matcher("operator[]")("Bits::operator[](int)")).toBe(true);
  expect(matcher("?")("f(int)")).toBe(false);
});

test("source is coloured line by line, and brings no markup of its own", () => {
  const lines = highlightLines('/* one\ntwo </span><img src=x onerror="alert(1)"> */\nint f() { return 1; }\n', "a.cc");
  expect(lines).toHaveLength(4);
  for (const line of lines) {
    expect(line.match(/<span/g)?.length ?? 0).toBe(line.match(/<\/span/g)?.length ?? 0);
    expect(line).not.toContain("<img");
  }
  expect(lines[1]).toContain("hljs-comment");
  expect(splitLines('<span class="a">x\ny</span>z')).toEqual(['<span class="a">x</span>', '<span class="a">y</span>z']);
});
