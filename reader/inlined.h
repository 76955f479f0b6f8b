// SPDX-License-Identifier: MIT
// What the compiler inlined into functions, as debug information tells it.
//
// An inlined function has no sled, so no events: nothing here says that it ran, how often or how long. It says that a
// copy of its code is part of the function, and whose copy lies within whose.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace karst::reader {

/// A function that was inlined, at one or several places, into the same function and the same inlined callers. Texts
/// are numbers in their InlinedTable.
struct InlinedCall {
  std::uint32_t function = 0;   ///< id of the function whose code it has become
  std::uint32_t depth = 1;      ///< 1: inlined into the function itself; n + 1: into the last one before it of depth n
  std::uint32_t copies = 1;     ///< places where that was done
  std::uint32_t line = 0;       ///< of its definition; 0: not known
  std::uint32_t call_line = 0;  ///< of the first of these places; 0: not known
  std::uint32_t name = 0;       ///< text: demangled
  std::uint32_t file = 0;       ///< text: source of its definition
  std::uint32_t call_file = 0;  ///< text: source of the first of these places
};

/// The inlined functions of one process. One thread while it is filled, any number afterwards.
class InlinedTable {
 public:
  /// Calls of one function are added in order, parents before children; functions in any order.
  void add(const InlinedCall& call) { calls_.push_back(call); }
  /// The number of a text; equal texts share it.
  std::uint32_t text_number(std::string_view text) {
    const auto [at, fresh] = numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
    if (fresh) texts_.emplace_back(text);
    return at->second;
  }
  /// Call once after the last add().
  void settle() {
    std::stable_sort(calls_.begin(), calls_.end(), before);
    numbers_ = {};
  }

  /// Drops those of functions whose id is not set in `wanted`.
  void keep(const std::vector<bool>& wanted) {
    std::erase_if(calls_, [&](const InlinedCall& c) { return c.function >= wanted.size() || !wanted[c.function]; });
  }

  bool empty() const { return calls_.empty(); }
  std::size_t size() const { return calls_.size(); }
  std::span<const InlinedCall> all() const { return calls_; }
  /// Those of one function, parents before children. Requires settle().
  std::span<const InlinedCall> of(std::uint32_t function) const {
    InlinedCall wanted;
    wanted.function = function;
    const auto [first, last] = std::equal_range(calls_.begin(), calls_.end(), wanted, before);
    return {first, last};
  }
  /// Empty for a number that is not there.
  std::string_view text(std::uint32_t number) const {
    return number < texts_.size() ? std::string_view(texts_[number]) : std::string_view();
  }

 private:
  static bool before(const InlinedCall& a, const InlinedCall& b) { return a.function < b.function; }

  std::vector<InlinedCall> calls_;
  std::vector<std::string> texts_ = {{}};  // number 0 is the empty text
  std::unordered_map<std::string, std::uint32_t> numbers_ = {{{}, 0}};
};

}  // namespace karst::reader
