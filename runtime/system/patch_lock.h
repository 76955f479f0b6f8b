// SPDX-License-Identifier: MIT
// The lock of all changes to code: patching at start, modules that come and go, switching on and off, forks.
//
// A fork waits for it (pthread_atfork), so that no child sees sleds that are half changed. It is held for as long as a
// change of all code takes (some milliseconds), so who waits sleeps. Signals are blocked meanwhile, except during a
// fork; a handler that forks inside of that fork passes through. In a forked child it is free.
#pragma once
#include "runtime/system/syscalls.h"

namespace karst::runtime {

/// At start. False when memory is short.
bool prepare_patch_lock();

/// Holds the lock while it lives.
class Patching {
 public:
  Patching();
  ~Patching();
  Patching(const Patching&) = delete;
  Patching& operator=(const Patching&) = delete;

 private:
  sys::SignalsBlocked signals_;
};

/// The calling thread holds it. For assertions: defined where they are on.
bool holds_patching();

/// Around a fork, in the thread that forks; the second in the parent alone.
void hold_patching();
void release_patching();

}  // namespace karst::runtime
