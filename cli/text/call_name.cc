// SPDX-License-Identifier: MIT
#include "cli/text/call_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "cli/text/text.h"

namespace karst::cli {

Result<CallName> parse_call_name(std::string_view text) {
  const std::size_t at = text.find('@');
  CallName name;
  const auto [end, error] = std::from_chars(text.data(), text.data() + std::min(at, text.size()), name.tid);
  const auto begin =
      at == std::string_view::npos ? Result<std::uint64_t>(Error{}) : parse_duration(std::string(text.substr(at + 1)));
  if (error != std::errc() || at == std::string_view::npos || end != text.data() + at || !begin)
    return Error{
        fmt::format("'{}' names no call: 'karst calls' and 'karst explain' print names like 4505@54731245ns", text)};
  name.begin_ns = *begin;
  return name;
}

}  // namespace karst::cli
