// SPDX-License-Identifier: MIT
// Which noted values of a call are other than those of typical calls: a hint of why it was slow, and no more than that.
//
// here   the value in the call; of a path below it in the longest call there
// usual  the values of all calls on that path in typical calls
//
// A value that a typical call has is no hint. Any other one is, if typical calls' values repeat so much that a new one
// is rare: by how many of them occur once alone (Good and Turing's estimate). Addresses and counters, which are new in
// each call, are no hints therefore. A number is one, too, that lies outside those of typical calls by all their range,
// unless they mostly rise or fall from call to call, as counters do.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/values.h"

namespace karst::analysis {

struct ValueHint {
  std::uint32_t function = 0;    ///< number; that of the path's last call
  bool below = false;            ///< it is of a call on the path below the call that is explained
  std::string name;              ///< of an argument, or `returned` or `returned NAME`
  std::string here;              ///< as values_text() shows it
  std::uint64_t calls = 0;       ///< of the path in the call; above 1 `here` is the longest one's
  std::uint64_t typical = 0;     ///< values in typical calls
  std::string commonest;         ///< of those
  std::uint64_t times = 0;       ///< that they are this one
  bool numbers = false;          ///< they are, and `here` is
  std::string least, mid, most;  ///< of numbers: the range and the median
  /// `n=500000 here; n=1000 in 97 of 101 typical calls`. Not made printable.
  std::string words;
};

/// Values by path; paths have numbers. What Explainer asks; so it needs nothing that reads values.
class PathValues {
 public:
  virtual ~PathValues() = default;
  /// Whether something is noted of a call of the thread at hand.
  virtual bool has(std::uint32_t row) const = 0;
  virtual void add_typical(std::uint32_t path, std::uint32_t row) = 0;
  virtual void set_here(std::uint32_t path, std::uint32_t row) = 0;
  /// `function`, `below` and `calls` are as given.
  virtual std::vector<ValueHint> hints(std::uint32_t path, std::uint32_t function, bool below,
                                       std::uint64_t calls) const = 0;
};

/// Memory is bounded for each path. Use from one thread.
class ValueSamples : public PathValues {
 public:
  /// The calls of this thread come next. All must outlive that. `values`: null where nothing is noted.
  void look_at(const reader::Trace& trace, const reader::Thread& thread, const CallValues* values) {
    trace_ = &trace;
    thread_ = &thread;
    values_ = values == nullptr || values->empty() ? nullptr : values;
  }
  bool has(std::uint32_t row) const override { return values_ != nullptr && values_->has(row); }
  void add_typical(std::uint32_t path, std::uint32_t row) override;
  void set_here(std::uint32_t path, std::uint32_t row) override;
  std::vector<ValueHint> hints(std::uint32_t path, std::uint32_t function, bool below,
                               std::uint64_t calls) const override;

  void add_typical(std::uint32_t path, const NamedValues& values);
  void set_here(std::uint32_t path, NamedValues values) { here_[path] = std::move(values); }

 private:
  struct Usual {
    std::unordered_map<std::string, std::uint64_t> times;
    std::uint64_t count = 0;
    std::optional<double> latest;        // where that is a number
    std::uint64_t rises = 0, falls = 0;  // from each number to the next
  };
  static std::optional<ValueHint> hint(const std::string& here, const Usual& usual);

  const reader::Trace* trace_ = nullptr;
  const reader::Thread* thread_ = nullptr;
  const CallValues* values_ = nullptr;
  std::unordered_map<std::uint32_t, NamedValues> here_;
  std::unordered_map<std::uint32_t, std::uint64_t> calls_;  // typical ones, by path
  std::map<std::pair<std::uint32_t, std::string>, Usual> usual_;
};

}  // namespace karst::analysis
