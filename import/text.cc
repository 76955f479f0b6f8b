// SPDX-License-Identifier: MIT
#include "import/text.h"

#include <cmath>

namespace karst::importing {

std::string_view cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most != 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

std::optional<std::int64_t> to_ns(double time, double ns_in_unit) {
  const double ns = time * ns_in_unit;
  if (!(std::abs(ns) <= static_cast<double>(kLatestNs))) return std::nullopt;
  return std::llround(ns);
}

}  // namespace karst::importing
