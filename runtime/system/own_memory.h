// SPDX-License-Identifier: MIT
// A stack and a thread-local area for code of the runtime's own that libc knows nothing of (own_thread.h,
// own_process.h).
#pragma once
#include <cstdint>

namespace karst::runtime {

class OwnMemory {
 public:
  /// False when it cannot be had. Once made it is kept.
  bool make();
  std::uintptr_t thread_pointer() const;
  std::uintptr_t stack_top() const;
  /// The address lies on its stack.
  bool has(std::uintptr_t address) const;

 private:
  std::uintptr_t begin_ = 0;  // thread-local area, then stack
};

}  // namespace karst::runtime
