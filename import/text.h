// SPDX-License-Identifier: MIT
// Names and numbers as foreign traces have them, made fit for one of ours.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "import/foreign_trace.h"

namespace karst::importing {

inline constexpr std::size_t kMostName = 4096;              ///< bytes of a name; what is longer is cut
inline constexpr std::uint32_t kFirstMadeId = 900'000'000;  ///< stands for an id that is no number of the kernel's

/// At most so many bytes, and no part of a character at the end.
std::string_view cut(std::string_view text, std::size_t most);

/// Nanoseconds of a time in units of `ns_in_unit`. None: it is none that can be.
std::optional<std::int64_t> to_ns(double time, double ns_in_unit);

struct HashText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
/// Numbers of what has a name.
using Numbers = std::unordered_map<std::string, std::uint32_t, HashText, std::equal_to<>>;

}  // namespace karst::importing
