// SPDX-License-Identifier: MIT
// Writes JSON as text, front to back. Commas take care of themselves. From one thread at a time.
#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace karst {

/// Appends `text` as a JSON string with its quotes (RFC 8259); invalid UTF-8 becomes U+FFFD, byte by byte. JSON may go
/// to a terminal: control characters and all that is_misleading() (base/utf8.h) are escaped.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

class Json {
 public:
  /// `{` or `[`; the same bracket's other side goes to close().
  Json& open(char bracket) {
    separate();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  Json& close(char bracket) {
    break_line();
    text_ += bracket;
    fresh_ = false;
    return *this;
  }
  Json& key(std::string_view name) {
    separate();
    append_json_string(text_, name);
    text_ += ':';
    fresh_ = true;
    return *this;
  }
  /// A name that needs no escape.
  Json& known_key(std::string_view name) {
    separate();
    text_.append(1, '"').append(name).append("\":");
    fresh_ = true;
    return *this;
  }
  Json& value(std::string_view text) {
    separate();
    append_json_string(text_, text);
    return *this;
  }
  Json& value(const char* text) { return value(std::string_view(text)); }
  template <typename T>
  Json& value(const std::optional<T>& what) {
    return what ? value(*what) : null();
  }
  Json& value(bool b) { return raw(b ? "true" : "false"); }
  template <std::integral Number>
  Json& value(Number number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return raw({digits, static_cast<std::size_t>(end - digits)});
  }
  /// To that many decimals: a thousandth of ns is more than any clock tells. null for what is no number.
  Json& value(double number, int decimals = 3) {
    if (!std::isfinite(number)) return null();
    char digits[400];
    auto end = std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, decimals).ptr;
    while (decimals != 0 && *(end - 1) == '0') --end;
    if (*(end - 1) == '.') --end;
    return raw({digits, static_cast<std::size_t>(end - digits)});
  }
  Json& null() { return raw("null"); }
  /// JSON that is ready.
  Json& raw(std::string_view json) {
    separate();
    text_ += json;
    return *this;
  }
  template <typename T>
  Json& field(std::string_view name, const T& what) {
    return key(name).value(what);
  }
  /// "name":[what(item) of each]
  template <typename List, typename What>
  Json& list(std::string_view name, const List& items, What&& what) {
    key(name).open('[');
    for (const auto& item : items) value(what(item));
    return close(']');
  }

  /// What comes next, also a closing bracket, begins a line.
  Json& line() {
    line_ = true;
    return *this;
  }

  /// What is written so far; the writer goes on behind it.
  std::string take() { return std::exchange(text_, {}); }
  /// The same, appended to `sink`, without giving memory away.
  template <typename Sink>
  void flush(Sink& sink) {
    sink.append(std::string_view(text_));
    text_.clear();
  }

 private:
  void separate() {
    if (!fresh_) text_ += ',';
    fresh_ = false;
    break_line();
  }
  void break_line() {
    if (line_) text_ += '\n';
    line_ = false;
  }
  std::string text_;
  bool fresh_ = true;  // nothing stands before that a comma would have to follow
  bool line_ = false;
};

}  // namespace karst
