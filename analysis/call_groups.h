// SPDX-License-Identifier: MIT
// Calls put into groups by a key: what an argument was, what they returned, which request their thread worked on, or
// in which frame they were.
//
// A group has a number as a function has one (analysis/parts.h). CallGroups puts it into the column where the
// function's stands, so that whatever adds up calls by function adds them up by group. There is no second table.
//
//   others  calls of functions that were not asked for; their time is no group's
//   none    calls without such a value
//   rest    calls of values that were met after the first kMostValues: so much memory is enough
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/requests.h"
#include "analysis/selection.h"
#include "columns/scope.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

enum class GroupBy { kArgument, kReturned, kRequest, kFrame };

/// `trace` and `functions` must outlive it. Use from one thread at a time.
class CallGroups {
 public:
  static constexpr std::uint32_t kOthers = 0, kNone = 1, kRest = 2;
  static constexpr std::size_t kMostValues = std::size_t{1} << 18;

  /// `argument`: its name, for kArgument. Groups only calls of `functions`; null: of all, for kReturned of those whose
  /// returned values were asked for.
  CallGroups(const reader::Trace& trace, GroupBy by, std::string argument, const FunctionSet* functions,
             std::size_t most_values = kMostValues);

  /// For kRequest: what the thread that comes next worked on; for kFrame: the frames (analysis/frames.h). Its calls are
  /// cut at these times (cut_at_requests()).
  void works_on(std::vector<RequestWork> work) { work_ = std::move(work); }
  /// `part`, which is all of `calls`, with groups in the place of functions. Good until the next call of this, and as
  /// long as `part` is.
  const columns::Scope::Part& of(const reader::Thread& thread, const reader::Calls& calls,
                                 const columns::Scope::Part& part);
  /// Groups so far; their numbers are below.
  std::size_t size() const { return texts_.size(); }
  /// The value, as values_text() shows it, or `<not noted>` and the like.
  const std::string& text(std::uint32_t group) const { return texts_[group]; }

 private:
  bool is_asked_for(const reader::Thread& thread, std::uint32_t function) const;
  std::uint32_t group_of(std::string_view text);
  void by_values(const reader::Thread& thread, const reader::Calls& calls);
  void by_requests(const reader::Thread& thread, const reader::Calls& calls);

  const reader::Trace& trace_;
  const GroupBy by_;
  const std::string argument_;
  const FunctionSet* const functions_;
  const std::size_t most_;  // groups
  std::vector<RequestWork> work_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> known_;
  std::vector<std::uint32_t> group_;   // by row of the part at hand
  std::vector<std::uint32_t> itself_;  // a group's number is its own
  columns::ThreadCalls columns_;
  columns::Scope::Part part_;
};

}  // namespace karst::analysis
