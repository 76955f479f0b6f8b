// SPDX-License-Identifier: MIT
// A child of fork() has the forking thread alone. Whatever another one held at that moment stays held in it: glibc sees
// to its own locks, but allocators of sanitizers do not, and their child would wait for ever. So threads that work
// beside others that may fork share this lock while they do more than sleep, and who forks has it alone.
#pragma once
#include <shared_mutex>

namespace karst {

inline std::shared_mutex& fork_lock() {
  static std::shared_mutex lock;
  return lock;
}

}  // namespace karst
