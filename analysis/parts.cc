// SPDX-License-Identifier: MIT
#include "analysis/parts.h"

namespace karst::analysis {

void Parts::number(std::uint32_t process, const reader::Piece& piece) {
  std::uint32_t last = columns::kNoFunction;
  for (std::uint32_t row = piece.carried; row < piece.end; ++row) {
    const std::uint32_t id = piece.calls.function[row];
    if (id == last) continue;
    last = id;
    if (functions_.has(process, id)) continue;
    functions_.add(trace_, process, id, 0);
    if (functions_.functions().size() > wanted_.size())
      wanted_.push_back(asked_for_ == nullptr || asked_for_->contains(process, id));
  }
}

const columns::Scope::Part& Parts::of(const reader::Thread& thread, const reader::Piece& piece,
                                      const reader::ThreadStates* states) {
  const reader::Calls& calls = piece.calls;
  number(thread.process, piece);
  columns_ = {columns::CallColumns(calls), trace_.processes()[thread.process].start_ticks, states};
  part_ = {&columns_, 0, {}};
  if (piece.end != 0) part_.function_of = functions_.of_process(thread.process);
  part_.rows.last = piece.end;
  part_.open = piece.open;
  return part_;
}

const columns::Scope::Part& Parts::of(const reader::Thread& thread, const reader::Piece& piece) {
  const reader::States& states = trace_.states();
  const std::uint32_t pid = trace_.processes()[thread.process].pid;
  return of(thread, piece, states.empty() ? nullptr : states.of(pid, thread.tid));
}

}  // namespace karst::analysis
