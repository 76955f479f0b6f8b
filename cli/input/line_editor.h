// SPDX-License-Identifier: MIT
// Lines that a person types on a terminal, with editing, a history and completion, by libedit.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace karst::cli {

/// What Tab offers in place of the last `replaced` bytes before the cursor.
struct Completions {
  std::size_t replaced = 0;
  std::vector<std::string> words;
};

/// Of one thread, and one at a time: it sets the terminal, and gives it back between lines.
class LineEditor {
 public:
  /// `complete` is given the line up to the cursor.
  explicit LineEditor(std::function<Completions(std::string_view before)> complete);
  ~LineEditor();
  LineEditor(LineEditor&&) = delete;

  enum class Read {
    kLine,
    kInterrupted,  ///< Ctrl+C: the line is dropped
    kEnd,          ///< Ctrl+D, or the terminal is gone
  };
  /// `line` is without its newline.
  Read read(const std::string& prompt, std::string& line);
  /// What the arrow up brings back; it may have several lines.
  void remember(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace karst::cli
