// SPDX-License-Identifier: MIT
#include "cli/text/names.h"

#include <vector>

#include "cli/text/text.h"

namespace karst::cli {

std::string fit_name(std::string_view name, std::size_t width) {
  const std::vector<std::string_view> parts = plain_parts(name);
  std::size_t from = 0;
  std::string text = join_parts(parts, from);
  while (text_width(text) > width && from + 1 < parts.size()) text = join_parts(parts, ++from);
  return fit_tail(text, width);
}

}  // namespace karst::cli
