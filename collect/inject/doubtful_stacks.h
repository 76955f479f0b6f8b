// SPDX-License-Identifier: MIT
// Stacks that have words from the allocator or the dynamic linker, which may be old: of a shell at its prompt, of an
// interpreter that computes. Their frames are found as an exception's are, by the files' tables (kernel/unwind.h),
// while the thread is stopped: which takes a part of a millisecond once the files have been read.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "collect/inject/memory.h"
#include "collect/inject/threads.h"
#include "kernel/unwind.h"

namespace karst::collect {

class DoubtfulStacks {
 public:
  explicit DoubtfulStacks(HeldProcess process) : process_(std::move(process)) {}

  /// A thread is stopped and has this stack. True: none of its frames is in busy code, nor in a signal handler. False
  /// also if that is not known in some milliseconds, or not yet.
  bool is_free(const StackWords& stack, const BusyCode& busy, const ForeignMemory& memory);
  /// Reads files of stacks that were not known. The threads run meanwhile.
  void prepare();

 private:
  HeldProcess process_;
  std::optional<kernel::LiveUnwinder> unwinder_;
  kernel::AddressSpaces spaces_;  // that it knows
  std::vector<StackWords> unknown_;
};

}  // namespace karst::collect
