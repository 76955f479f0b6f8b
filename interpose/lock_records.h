// SPDX-License-Identifier: MIT
// Records of who takes and lets go of locks (format/lock.h), for `karst run --system locks=all`.
//
//   begin()             in the library's constructor
//   LockRecords::all()    false: none of the others is called
//
// That a lock was taken is recorded behind the call, that it was let go before it: between the two the thread had it.
// A call that fails to let go is told afterwards. Of a recursive mutex the outermost hold counts alone.
#pragma once
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "format/lock.h"
#include "format/system.h"
#include "interpose/record.h"
#include "interpose/static_locks.h"
#include "interpose/switch.h"

namespace karst::interpose {

/// The records of a kind of lock.
struct LockKinds {
  RecordKind taken, released, kept, made;
};
constexpr LockKinds lock_kinds(const char* name) {
  return {record_kind(name, format::kLockTaken), record_kind(name, format::kLockReleased),
          record_kind(name, format::kLockKept), record_kind(name, format::kLockMade)};
}

/// Whether a call took the lock. Those of C11 have other errors, of which none is EOWNERDEAD.
inline bool is_taken(int result) { return result == 0 || result == EOWNERDEAD; }

class LockRecords {
 public:
  static bool all() { return __builtin_expect(mode() == format::InterposeMode::kAll, 0); }
  static constinit inline LockKinds mutex = lock_kinds("mutex");
  static constinit inline LockKinds exclusive = lock_kinds("rwlock");
  static constinit inline LockKinds shared = lock_kinds("rwlock (shared)");
  static constinit inline LockKinds spin = lock_kinds("spinlock");

  static void begin() {
    const char* const how = format::system_how(getenv(format::kSystemVariable), "locks");
    const bool wanted =
        how != nullptr && how[0] == 'a' && how[1] == 'l' && how[2] == 'l' && (how[3] == '\0' || how[3] == ',');
    if (!wanted) return;
    const bool entered = enter_kinds({&mutex.taken, &mutex.released, &mutex.kept, &mutex.made, &exclusive.taken,
                                      &exclusive.released, &exclusive.kept, &exclusive.made, &shared.taken, &spin.taken,
                                      &spin.released, &spin.kept, &spin.made});
    if (entered) set_mode(format::InterposeMode::kAll);
  }
};

KARST_NAMES(of_locks, &LockRecords::mutex.taken.name, &LockRecords::mutex.released.name, &LockRecords::mutex.kept.name,
            &LockRecords::mutex.made.name, &LockRecords::exclusive.taken.name, &LockRecords::exclusive.released.name,
            &LockRecords::exclusive.kept.name, &LockRecords::exclusive.made.name, &LockRecords::shared.taken.name,
            &LockRecords::spin.taken.name, &LockRecords::spin.released.name, &LockRecords::spin.kept.name,
            &LockRecords::spin.made.name)

/// How a call takes a lock: for as long as it has to wait, or gives up, at once or after a time.
enum class Takes : uint32_t { kWaits = 0, kGivesUp = 1 };

inline uint64_t lock_number(const volatile void* lock) { return reinterpret_cast<uintptr_t>(lock); }

/// Each returns `result`.
__attribute__((noinline)) inline int tell_taken(StaticLocks& names, LockKinds& kinds, const void* lock, int result,
                                                Takes how) {
  if (!is_taken(result)) return result;
  names.meet(lock);
  record(kinds.taken, lock_number(lock), static_cast<uint32_t>(how));
  return result;
}
inline int tell_made(LockKinds& kinds, const void* lock, int result) {
  if (LockRecords::all() && result == 0) record(kinds.made, lock_number(lock));
  return result;
}

/// `let_go`: the call.
template <typename LetGo>
__attribute__((noinline)) int tell_released(LockKinds& kinds, const void* lock, LetGo let_go) {
  record(kinds.released, lock_number(lock));
  const int result = let_go();
  if (result != 0) record(kinds.kept, lock_number(lock));
  return result;
}

/// The calling thread has it twice or more. Its owner alone may ask: for others the answer means nothing, and what they
/// do fails.
inline bool is_nested(const pthread_mutex_t* mutex) {
  return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE && mutex->__data.__count > 1;
}

__attribute__((noinline)) inline int tell_mutex_taken(StaticLocks& names, const pthread_mutex_t* mutex, int result,
                                                      Takes how) {
  if (is_taken(result) && is_nested(mutex)) return result;
  return tell_taken(names, LockRecords::mutex, mutex, result, how);
}
template <typename LetGo>
__attribute__((noinline)) int tell_mutex_released(const pthread_mutex_t* mutex, LetGo let_go) {
  if (is_nested(mutex)) return let_go();
  return tell_released(LockRecords::mutex, mutex, let_go);
}

/// A wait for a condition, which lets go of the mutex and takes it again. `timed_out`: what it returns then.
template <typename Wait>
__attribute__((noinline)) int tell_condition(StaticLocks& names, const pthread_mutex_t* mutex, int timed_out,
                                             Wait wait) {
  if (is_nested(mutex)) return wait();
  record(LockRecords::mutex.released, lock_number(mutex));
  const int result = wait();
  if (is_taken(result) || result == timed_out)
    return tell_taken(names, LockRecords::mutex, mutex, 0, Takes::kWaits), result;
  record(LockRecords::mutex.kept, lock_number(mutex));
  return result;
}

}  // namespace karst::interpose
