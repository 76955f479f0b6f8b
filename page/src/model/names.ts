// SPDX-License-Identifier: MIT
// Demangled C++ names for narrow places: the parts of a name from the most telling to the least.
//
//   leveldb::DBImpl::MakeRoomForWrite(bool)
//   -> leveldb::DBImpl::MakeRoomForWrite, DBImpl::MakeRoomForWrite, MakeRoomForWrite

import type { TraceInfo } from "../backend/types/trace";

const OPEN = "([{<";
const CLOSE = ")]}>";

/** Splits `a::b<x::y>::c(int)` into `a`, `b<x::y>`, `c(int)`: only at `::` outside of all brackets. */
function components(name: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let i = 0; i < name.length; ++i) {
    const c = name[i]!;
    if (name.startsWith("operator", i) && !/\w/.test(name[i + 8] ?? "")) {
      // The brackets of operator(), operator<, operator->, operator[] close nothing.
      const symbol = /^operator(\(\)|\[\]|[-+*/%^&|~!=<>,]+)/.exec(name.slice(i))?.[0];
      if (symbol) {
        i += symbol.length - 1;
        continue;
      }
    }
    if (OPEN.includes(c)) ++depth;
    else if (CLOSE.includes(c)) depth = Math.max(0, depth - 1);
    else if (depth === 0 && c === ":" && name[i + 1] === ":") {
      parts.push(name.slice(from, i));
      from = i + 2;
      ++i;
    }
  }
  parts.push(name.slice(from));
  return parts;
}

/** A component without its parameters and template arguments: `b<x>` -> `b`; `(anonymous namespace)` -> ``. */
function bare(part: string): string {
  if (part.startsWith("(anonymous")) return "";
  if (part.startsWith("{") || part.startsWith("'")) return part.startsWith("{lambda") ? "λ" : part;
  const operator = /^operator(\(\)|\[\]|[-+*/%^&|~!=<>,]+|"" \w+| \w.*?(?=\())/.exec(part);
  if (operator) return operator[0];
  let end = part.length;
  for (let i = 0; i < part.length; ++i) {
    // Python's `Shop.serve.<locals>.<lambda>`: no template's arguments follow a dot.
    if ("(<[{".includes(part[i]!) && i > 0 && !(part[i] === "<" && part[i - 1] === ".")) {
      end = i;
      break;
    }
  }
  return part.slice(0, end).trim();
}

/** The parts of a name of Python's, `app.views.Shop.get.<locals>.<lambda>`; null: it is none. C has suffixes of clones. */
function dottedParts(name: string): string[] | null {
  const parts = name.split(".");
  const isPart = (part: string) => /^([\p{L}_][\p{L}\p{N}_]*|<\w+>)$/u.test(part);
  const isSuffix = (part: string) => /^(isra|constprop|part|cold|lto_priv|localalias|llvm)$/.test(part);
  return parts.length > 1 && parts.every(isPart) && !parts.slice(1).some(isSuffix) ? parts : null;
}

/** A thread's name, with its id where another one of the trace has that name too. */
export function threadName({ threads }: Pick<TraceInfo, "threads">, index: number): string {
  const thread = threads[index];
  if (!thread) return "?";
  if (!thread.name) return `thread ${thread.tid}`;
  const shared = threads.some(({ name }, other) => name === thread.name && other !== index);
  return visible(shared ? `${thread.name} ${thread.tid}` : thread.name);
}

const cache = new Map<string, readonly string[]>();

/** Ever shorter forms of a name, the longest first; never empty. Remembered. */
export function forms(name: string): readonly string[] {
  const known = cache.get(name);
  if (known) return known;
  // Clone suffixes and parameters behind a function-local scope say little in a narrow place.
  const plain = name.replace(/ \[clone [^\]]*\]/g, "");
  const dotted = dottedParts(plain);
  const parts =
    dotted ??
    components(plain)
      .map(bare)
      .filter((part) => part !== "");
  const result: string[] = [];
  for (let from = 0; from < parts.length; ++from) {
    const form = parts.slice(from).join(dotted ? "." : "::");
    if (form !== "" && form.length < (result[result.length - 1]?.length ?? Infinity)) result.push(form);
  }
  if (result.length === 0) result.push(name);
  if (cache.size > 200_000) cache.clear();
  cache.set(name, result);
  return result;
}

/** `leveldb::DBImpl::Write(bool)` -> `leveldb::DBImpl::`, `Write`, `(bool)`: joined they are the name. */
export function split(name: string): { scope: string; base: string; rest: string } {
  const plain = name.replace(/ \[clone [^\]]*\]$/, "");
  const parts = components(plain);
  // What stands behind a space outside of brackets before the name is its return type: templates have one.
  const last = parts[parts.length - 1]!;
  const scope = plain.slice(0, plain.length - last.length);
  const base = bare(last);
  if (base === "" || !last.startsWith(base)) return { scope, base: name.slice(scope.length), rest: "" };
  return { scope, base, rest: name.slice(scope.length + base.length) };
}

/** The name without parameters and template arguments, scopes included. */
export function plain(name: string): string {
  return forms(name)[0]!;
}

/**
 * A full name as people write it: the standard library's spelled-out defaults give way to their usual names, and `> >`
 * to `>>`. For reading alone: searches and exports have the name itself.
 */
export function readable(name: string): string {
  return visible(name)
    .replace(/std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >/g, "std::string")
    .replace(/std::basic_string_view<char, std::char_traits<char> >/g, "std::string_view")
    .replace(/std::__cxx11::/g, "std::")
    .replace(/, std::allocator<[^<>]*(<[^<>]*>[^<>]*)*> >/g, ">")
    .replace(/> (?=>)/g, ">");
}

/** Whether the text is a part of the name, as it is or as it is shown. */
export function isShownIn(name: string, text: string): boolean {
  return name.includes(text) || readable(name).includes(text) || forms(name).includes(text);
}

const kShown =
  /[\u0000-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Names may hold anything: control characters and those that reorder text, or are not seen, are shown, not obeyed. The
 * same characters as base/utf8.h has. */
export function visible(name: string): string {
  return name.replace(kShown, (c) => {
    const code = c.codePointAt(0) ?? 0;
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}
