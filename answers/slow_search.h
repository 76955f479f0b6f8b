// SPDX-License-Identifier: MIT
// What there is to say of slow calls beside that they are: where their time went, whom they waited for, and which
// functions stand beside them that have no usual time, or no end that is known.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/left_calls.h"
#include "analysis/outliers.h"
#include "analysis/values.h"
#include "analysis/waits.h"
#include "answers/slow.h"
#include "columns/selection.h"
#include "words/waits.h"

namespace karst::answers {

/// Use from one thread; all that it is given outlives it.
class SlowSearch {
 public:
  /// A thread's calls that are asked about, valid until the next call.
  using CallsOf = std::function<const reader::Calls&(const reader::Thread& thread)>;

  /// `finder` has learnt and found. `asked`: the part of time that is asked about; none: all. `follow`: go on from who
  /// ended a wait to what that thread waited for.
  SlowSearch(const reader::Trace& trace, const std::optional<columns::TickRange>& asked, CallsOf calls_of, bool follow,
             analysis::OutlierFinder& finder);

  /// The longest wait in it, if that is a tenth of its excess; else null.
  const analysis::Wait* wait_of(const analysis::Outlier& outlier) const;
  SlowCall tell(const analysis::OutlierGroup& group);
  /// Functions without a usual time whose calls are long beside what is listed; or, if nothing is, beside all.
  std::vector<RareFunction> rare_beside(const std::vector<analysis::OutlierGroup>& groups) const;
  /// Functions that are not seen to their end, where that may be much later.
  std::vector<LeftFunction> left_beside(const std::vector<analysis::OutlierGroup>& groups,
                                        analysis::LeftCallFinder& finder) const;
  bool has_states() const { return waits_ != nullptr; }

 private:
  const analysis::Wait* own_wait_of(const analysis::Outlier& call) const;
  std::optional<analysis::Wait> lock_wait_of(const analysis::Outlier& outlier);
  std::vector<words::ToldLink> chain(const reader::Thread& thread, const analysis::Wait& wait);
  const reader::Calls& all_calls_of(const reader::Thread& thread);
  const analysis::CallValues& values_of(const reader::Thread& thread, const reader::Calls& calls);
  NotedValues noted(const reader::Thread& thread, const reader::Calls& calls, const analysis::CallValues& values,
                    std::uint32_t row) const;

  const reader::Trace& trace_;
  const bool follow_;
  analysis::OutlierFinder& finder_;
  std::unique_ptr<analysis::Waits> waits_;
  analysis::LockWaitFinder lock_waits_;
  const CallsOf calls_of_;
  const words::WaitTeller teller_;
  std::uint64_t length_ = 0;  // ticks of what was asked about
  std::optional<analysis::CallValues> values_;
  const reader::Thread* values_thread_ = nullptr;
  const reader::Calls* values_calls_ = nullptr;
  reader::Calls all_calls_;
  const reader::Thread* all_calls_thread_ = nullptr;
};

}  // namespace karst::answers
