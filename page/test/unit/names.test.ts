import { describe, expect, test } from "vitest";
import type { TraceInfo } from "../../src/backend/types/trace";
import { forms, plain, readable, split, threadName, visible } from "../../src/model/names";

describe("forms of a name", () => {
  test.each([
    [
      "leveldb::DBImpl::MakeRoomForWrite(bool)",
      ["leveldb::DBImpl::MakeRoomForWrite", "DBImpl::MakeRoomForWrite", "MakeRoomForWrite"],
    ],
    ["main", ["main"]],
    ["app.Shop.get", ["app.Shop.get", "Shop.get", "get"]],
    ["json.<module>", ["json.<module>", "<module>"]],
    [
      "Shop.get.<locals>.<lambda>",
      ["Shop.get.<locals>.<lambda>", "get.<locals>.<lambda>", "<locals>.<lambda>", "<lambda>"],
    ],
    ["copy.isra.0", ["copy.isra.0"]],
    ["copy.cold", ["copy.cold"]],
    [
      "std::vector<int, std::allocator<int> >::push_back(int&&)",
      ["std::vector::push_back", "vector::push_back", "push_back"],
    ],
    ["(anonymous namespace)::run(int)", ["run"]],
    ["a::operator()(int) const", ["a::operator()", "operator()"]],
    ["operator<<(std::ostream&, int)", ["operator<<"]],
    ["a::operator<(b<c> const&)", ["a::operator<", "operator<"]],
    ["f()::{lambda(int)#1}::operator()(int) const", ["f::λ::operator()", "λ::operator()", "operator()"]],
    ["a::~a()", ["a::~a", "~a"]],
    ["f(int) [clone .constprop.0]", ["f"]],
  ])("%s", (name, expected) => expect(forms(name)).toEqual(expected));

  test("whatever a name is, there is something to show", () => {
    for (const name of ["", "::", "(", ">>>", "<", "operator", "a::", "{lambda", "((((((", "prog+0x1234"])
      expect(forms(name).length).toBeGreaterThan(0);
  });
  test("a name of 100,000 brackets takes no time", () => {
    expect(forms("a<".repeat(50_000) + "b" + ">".repeat(50_000)).length).toBe(1);
  });
});

test("overloads and template instances share their plain name, and so their colour", () => {
  expect(plain("f<int>(int)")).toBe(plain("f<char>(char)"));
});

test("control characters and those that reorder text are shown", () => {
  expect(visible("a\nb\u202ec\u0001")).toBe("a\\x0ab\\u{202e}c\\x01");
  expect(visible("a\u2028\u200b\u061c\u{e0041}é\u{1f987}")).toBe("a\\u{2028}\\u{200b}\\u{61c}\\u{e0041}é\u{1f987}");
});

test("the standard library's spelled-out defaults give way to usual names", () => {
  expect(readable("f(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)")).toBe(
    "f(std::string const&)",
  );
  expect(readable("std::vector<int, std::allocator<int> >::size()")).toBe("std::vector<int>::size()");
  expect(readable("a<b<c> >")).toBe("a<b<c>>");
});

describe("parts of a full name", () => {
  test.each([
    ["leveldb::DBImpl::Write(bool)", ["leveldb::DBImpl::", "Write", "(bool)"]],
    ["(anonymous namespace)::hot(unsigned int)", ["(anonymous namespace)::", "hot", "(unsigned int)"]],
    ["main", ["", "main", ""]],
    ["a::operator()(int) const", ["a::", "operator()", "(int) const"]],
    ["f(int) [clone .cold]", ["", "f", "(int) [clone .cold]"]],
  ])("%s", (name, expected) => {
    const { scope, base, rest } = split(name);
    expect([scope, base, rest]).toEqual(expected);
  });
  test("joined they are the name, whatever it is, and never without a middle", () => {
    for (const name of [
      "::",
      "(",
      ">>>",
      "operator",
      "a::",
      "{lambda",
      "f()::{lambda(int)#1}::operator()(int) const",
      "prog+0x1234",
      "(anonymous namespace)",
    ]) {
      const { scope, base, rest } = split(name);
      expect(scope + base + rest).toBe(name);
    }
    expect(split("f()::{lambda(int)#1}").base).not.toBe("");
  });
});

test("threads that share a name have their ids beside it", () => {
  const named = [
    ["main", 1],
    ["worker", 2],
    ["worker", 3],
    ["", 4],
  ] as const;
  const threads = named.map(([name, tid]) => ({ name, tid })) as unknown as TraceInfo["threads"];
  expect(threads.map((_, i) => threadName({ threads }, i))).toEqual(["main", "worker 2", "worker 3", "thread 4"]);
});
