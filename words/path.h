// SPDX-License-Identifier: MIT
// Paths of calls as text: "main > work x19 > leaf".
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace karst::words {

/// A recursion's names, which follow each other, are one: `work x19`.
inline std::vector<std::string> folded(std::vector<std::string> names) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < names.size();) {
    std::size_t end = i + 1;
    while (end < names.size() && names[end] == names[i]) ++end;
    runs.push_back(std::move(names[i]));
    if (end - i > 1) runs.back() += " x" + std::to_string(end - i);
    i = end;
  }
  return runs;
}

/// `names`: from the outermost call on.
inline std::string path_text(std::vector<std::string> names) {
  std::string text;
  for (const std::string& name : folded(std::move(names))) text += (text.empty() ? "" : " > ") + name;
  return text;
}

}  // namespace karst::words
