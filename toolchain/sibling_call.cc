// SPDX-License-Identifier: MIT
#include "toolchain/sibling_call.h"

#include <cstddef>

#include "format/tail_calls.h"

namespace karst::toolchain {
namespace {

constexpr std::string_view kLineBegins = "\n#";

/// Behind the expression that begins at `at`, an opening parenthesis; npos: it has no end. Texts in quotes, and what
/// is said of memory in brackets, may have parentheses of their own.
std::size_t behind_expression(std::string_view rtl, std::size_t at) {
  int depth = 0;
  int brackets = 0;
  bool in_quotes = false;
  for (; at < rtl.size(); ++at) {
    const char c = rtl[at];
    if (in_quotes) {
      if (c == '\\') ++at;
      in_quotes = c != '"';
      continue;
    }
    if (c == '"') in_quotes = true;
    if (c == '[') ++brackets;
    if (c == ']') --brackets;
    if (brackets != 0) continue;
    if (c == '(') ++depth;
    if (c == ')' && --depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

std::string_view without_space(std::string_view rtl) {
  for (;;) {
    if (rtl.starts_with(kLineBegins))
      rtl.remove_prefix(kLineBegins.size());
    else if (rtl.starts_with(' '))
      rtl.remove_prefix(1);
    else
      return rtl;
  }
}

/// Of any function that the instruction speaks of: where it is called by a pointer that the linker fills in, a note
/// behind the call has its name.
bool names_such_a_function(std::string_view rtl) {
  constexpr std::string_view kBegin = "(symbol_ref:DI (\"";
  for (std::size_t at = rtl.find(kBegin); at != std::string_view::npos; at = rtl.find(kBegin, at + 1)) {
    std::string_view name = rtl.substr(at + kBegin.size());
    name = name.substr(0, name.find('"'));
    if (name.starts_with('*')) name.remove_prefix(1);  // as it was written: asm("name")
    if (format::looks_at_return_address(name)) return true;
  }
  return false;
}

}  // namespace

bool may_be_called_in_place(std::string_view rtl) {
  if (!rtl.starts_with("#(call_insn/") || rtl.substr(0, rtl.find(' ')).find('j') == std::string_view::npos)
    return false;
  constexpr std::string_view kCall = "(call (mem:QI (";
  const std::size_t call = rtl.find(kCall);
  if (call == std::string_view::npos) return false;
  const std::size_t function = call + kCall.find("(mem");
  const std::size_t behind = behind_expression(rtl, function);
  return behind != std::string_view::npos && without_space(rtl.substr(behind)).starts_with("(const_int 0 [0])") &&
         !names_such_a_function(rtl);
}

}  // namespace karst::toolchain
