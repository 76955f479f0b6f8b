// SPDX-License-Identifier: MIT
// The page matches, with a library of the same syntax.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Compiles a pattern. 0: it is wrong, and karst_reply_of_pattern says why.
extern "C" __attribute__((import_module("karst"), import_name("compile"))) std::uint32_t karst_compile(
    const char* pattern, std::size_t size);
/// Writes what was wrong with the last pattern; bytes written, at most `room`.
extern "C" __attribute__((import_module("karst"), import_name("complaint"))) std::size_t karst_complaint(
    char* to, std::size_t room);
extern "C" __attribute__((import_module("karst"), import_name("matches"))) std::uint32_t karst_matches(
    std::uint32_t pattern, const char* text, std::size_t size);
extern "C" __attribute__((import_module("karst"), import_name("forget"))) void karst_forget(std::uint32_t pattern);

namespace re2 {
using StringPiece = std::string_view;
}

class RE2 {
 public:
  struct Options {
    void set_log_errors(bool) {}
    void set_never_capture(bool) {}
  };
  RE2(const std::string& pattern, const Options&) : pattern_(karst_compile(pattern.data(), pattern.size())) {
    if (ok()) return;
    constexpr std::size_t kLongest = 500;
    error_.resize(kLongest);
    error_.resize(karst_complaint(error_.data(), kLongest));
  }
  RE2(const RE2&) = delete;
  RE2& operator=(const RE2&) = delete;
  ~RE2() {
    if (ok()) karst_forget(pattern_);
  }
  bool ok() const { return pattern_ != 0; }
  const std::string& error() const { return error_; }
  const std::string& error_arg() const { return none_; }
  static bool PartialMatch(std::string_view text, const RE2& pattern) {
    return karst_matches(pattern.pattern_, text.data(), text.size()) != 0;
  }

 private:
  std::uint32_t pattern_;
  std::string error_;
  std::string none_;
};
