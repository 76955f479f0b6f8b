// SPDX-License-Identifier: MIT
#include "analysis/parts.h"

namespace karst::analysis {

void Parts::number(std::uint32_t process, const reader::Calls& calls) {
  std::uint32_t last = columns::kNoFunction;
  for (const std::uint32_t id : calls.function) {
    if (id == last) continue;
    last = id;
    if (functions_.has(process, id)) continue;
    functions_.add(trace_, process, id, 0);
    if (functions_.functions().size() > wanted_.size())
      wanted_.push_back(asked_for_ == nullptr || asked_for_->contains(process, id));
  }
}

const columns::Scope::Part& Parts::of(const reader::Thread& thread, const reader::Calls& calls,
                                      const reader::ThreadStates* states) {
  number(thread.process, calls);
  columns_ = {columns::CallColumns(calls), trace_.processes()[thread.process].start_ticks, states};
  part_ = {&columns_, 0, {}, {}};
  if (calls.size() != 0) part_.function_of = functions_.of_process(thread.process);
  part_.rows.last = static_cast<std::uint32_t>(calls.size());
  return part_;
}

const columns::Scope::Part& Parts::of(const reader::Thread& thread, const reader::Calls& calls) {
  const reader::States& states = trace_.states();
  const std::uint32_t pid = trace_.processes()[thread.process].pid;
  return of(thread, calls, states.empty() ? nullptr : states.of(pid, thread.tid));
}

}  // namespace karst::analysis
