// SPDX-License-Identifier: MIT
// An audit hook of a Python that has not begun. Python makes the hook's entry by the allocator that it has then, and
// frees it at its end by the one that it was told to use meanwhile (-X dev, PYTHONMALLOC=debug), which ends the
// program. So the entry is taken out of Python's list by the hook's first event.
#pragma once
#include <cstdint>

#include "runtime/interpreters/python_abi.h"

namespace karst::runtime {

class EarlyAuditHook {
 public:
  /// Before Python begins; the hook gets this object as its data. False if the list of hooks cannot be found: such a
  /// hook is to do nothing.
  bool add(const Python& python, PyAuditHook hook);
  bool is_there() const { return head_ != nullptr; }
  /// In the hook. The entry's memory is left, as who made it does not know it any more.
  void take_out();

 private:
  std::uintptr_t* head_ = nullptr;  ///< of the list; its entries begin with where the next one is
};

}  // namespace karst::runtime
