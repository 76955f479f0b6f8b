// SPDX-License-Identifier: MIT
// A lock off the hot path, for the tables that several threads may extend.
//
// Signals are blocked while it is held, so no handler of the same thread can wait for it; in a forked child it is free,
// however the fork was made and whoever held it then: its word lies in memory that the kernel wipes in children.
#pragma once
#include <cstdint>

#include "runtime/system/syscalls.h"

namespace karst::runtime {

class WipedLock {
 public:
  /// At start. False when the memory cannot be had; then it may not be taken.
  bool create();
  bool exists() const { return word_ != nullptr; }
  /// By some thread; for assertions.
  bool is_held() const { return word_ != nullptr && __atomic_load_n(word_, __ATOMIC_ACQUIRE) != 0; }

 private:
  friend class Locked;
  std::uint32_t* word_ = nullptr;  ///< 0: free
};

/// Holds the lock while it lives.
class Locked {
 public:
  explicit Locked(WipedLock& lock);
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  sys::SignalsBlocked signals_;
  WipedLock& lock_;
};

}  // namespace karst::runtime
