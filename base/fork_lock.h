// A child of fork() has the forking thread alone. Whatever another one held at that moment stays held in it: glibc sees
// to its own locks, but allocators of sanitizers do not, and their child would wait for ever. So threads that work
// beside others that may fork hold this lock while they do more than sleep.
#pragma once
#include <mutex>

namespace karst {

inline std::mutex& fork_lock() {
  static std::mutex lock;
  return lock;
}

}  // namespace karst
