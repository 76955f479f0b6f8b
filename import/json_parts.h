// SPDX-License-Identifier: MIT
// Finds where the values of a large JSON text end, so that a parser gets one of them at a time.
//
// A parser's values of a whole file would take 10 times its size. This knows brackets and quotes alone: what a value
// is, and whether it is one, its parser says.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace karst::importing {

class JsonParts {
 public:
  explicit JsonParts(std::string_view text) : text_(text) {}

  /// The next byte that is no white space, which stays; 0 at the end.
  char peek();
  /// Passes over it. False: it is another one.
  bool take(char c);
  /// The value that begins here, which is passed over. None: the text ends within it.
  std::optional<std::string_view> value();

 private:
  bool skip_string();
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace karst::importing
