// SPDX-License-Identifier: MIT
// Stands before libc's locks. A function tries the lock first; if it is free that is all, at the cost of one call more.
// Else the wait is a zone, whose arguments are the lock's address and the thread that has it (format/lock.h).
//
// With locks=all each lock that is taken, and let go, is a record besides (interpose/lock_records.h).
//
// Who has a mutex or writes under a rwlock glibc keeps in the lock, by the kernel's number. That is read without a
// lock: an answer that is out of date names who had it a moment ago.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <threads.h>
#include <time.h>

#include "format/lock.h"
#include "interpose/lock_records.h"
#include "interpose/next.h"
#include "interpose/static_locks.h"
#include "interpose/zone.h"

namespace {

using karst::format::kLockValues;
using karst::format::kWaitValues;
using karst::interpose::begin_standing;
using karst::interpose::is_off;
using karst::interpose::LockKinds;
using karst::interpose::LockRecords;
using karst::interpose::Takes;
using karst::interpose::tell_made;
using karst::interpose::Values;
using karst::interpose::Zone;

KARST_ZONE_KIND(mutex, "wait for mutex", kLockValues)
KARST_ZONE_KIND(shared, "wait for rwlock (shared)", kLockValues)
KARST_ZONE_KIND(exclusive, "wait for rwlock", kLockValues)
KARST_ZONE_KIND(spin, "wait for spinlock", kWaitValues)
KARST_ZONE_KIND(condition, "wait for condition", kWaitValues)
KARST_ZONE_KIND(semaphore, "wait for semaphore", kWaitValues)
KARST_ZONE_KIND(barrier, "wait for barrier", kWaitValues)

constinit karst::interpose::StaticLocks g_static_locks{};

/// `wait` in a zone.
template <typename Wait>
__attribute__((noinline)) int waited(Zone& zone, const void* lock, int holder, Wait wait) {
  g_static_locks.meet(lock);
  Values given;
  given.add(reinterpret_cast<uintptr_t>(lock));
  given.add(static_cast<uint32_t>(holder));
  return karst::interpose::in_zone(zone, given, wait);
}

/// The same of what no thread has.
template <typename Wait>
__attribute__((noinline)) int waited(Zone& zone, const void* lock, Wait wait) {
  g_static_locks.meet(lock);
  Values given;
  given.add(reinterpret_cast<uintptr_t>(lock));
  return karst::interpose::in_zone(zone, given, wait);
}

int holder_of(const pthread_mutex_t* mutex) { return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED); }
int holder_of(const pthread_rwlock_t* lock) { return __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED); }

KARST_BEFORE(pthread_mutex_lock)
KARST_BEFORE(pthread_mutex_trylock)
KARST_BEFORE(pthread_mutex_timedlock)
KARST_BEFORE(pthread_mutex_clocklock)
KARST_BEFORE(pthread_mutex_unlock)
KARST_BEFORE(pthread_mutex_init)
KARST_BEFORE(pthread_rwlock_rdlock)
KARST_BEFORE(pthread_rwlock_tryrdlock)
KARST_BEFORE(pthread_rwlock_timedrdlock)
KARST_BEFORE(pthread_rwlock_clockrdlock)
KARST_BEFORE(pthread_rwlock_wrlock)
KARST_BEFORE(pthread_rwlock_trywrlock)
KARST_BEFORE(pthread_rwlock_timedwrlock)
KARST_BEFORE(pthread_rwlock_clockwrlock)
KARST_BEFORE(pthread_rwlock_unlock)
KARST_BEFORE(pthread_rwlock_init)
KARST_BEFORE(pthread_spin_lock)
KARST_BEFORE(pthread_spin_trylock)
KARST_BEFORE(pthread_spin_unlock)
KARST_BEFORE(pthread_spin_init)
KARST_BEFORE(pthread_cond_clockwait)
KARST_BEFORE(pthread_barrier_wait)
KARST_BEFORE(sem_wait)
KARST_BEFORE(sem_trywait)
KARST_BEFORE(sem_timedwait)
KARST_BEFORE(sem_clockwait)
KARST_BEFORE(mtx_lock)
KARST_BEFORE(mtx_trylock)
KARST_BEFORE(mtx_timedlock)
KARST_BEFORE(mtx_unlock)
KARST_BEFORE(mtx_init)
KARST_BEFORE(cnd_wait)
KARST_BEFORE(cnd_timedwait)
KARST_BEFORE_VERSION(pthread_cond_wait, "GLIBC_2.3.2")
KARST_BEFORE_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2")

// libkarst's own constructor comes before all others.
__attribute__((constructor)) void begin() {
  const bool is_late = begin_standing();
  g_static_locks.begin();
  if (!is_late) LockRecords::begin();
  karst::interpose::enter_names({&g_mutex_zone, &g_shared_zone, &g_exclusive_zone, &g_spin_zone, &g_condition_zone,
                                 &g_semaphore_zone, &g_barrier_zone});
  if (is_late) karst::interpose::begin_redirecting();
}

/// Some functions refuse a time or a clock before they look at the lock; those calls are libc's alone. So are those
/// without a time, which libc takes while the lock is free.
bool is_usable(const timespec* until, clockid_t clock = CLOCK_REALTIME) {
  asm("" : "+r"(until));  // libc's header says that it is not null, so a compiler may drop the question
  return until != nullptr && static_cast<unsigned long>(until->tv_nsec) < 1'000'000'000 &&
         (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC);
}

/// The mutex of C11 is one of POSIX's.
const pthread_mutex_t* posix(const mtx_t* mutex) { return reinterpret_cast<const pthread_mutex_t*>(mutex); }

/// sem_trywait() leaves its mark in errno.
bool take_at_once(sem_t* semaphore) {
  const int before = errno;
  const bool taken = g_sem_trywait(semaphore) == 0;
  errno = before;
  return taken;
}

/// Tries such a mutex in no time. pthread_mutex_trylock() would not do for robust ones: of one that cannot be recovered
/// it says so, but leaves it locked for ever. EBUSY: another thread has it.
__attribute__((noinline)) int try_robust(pthread_mutex_t* mutex) {
  constexpr timespec kLongAgo{0, 0};
  const int tried = g_pthread_mutex_timedlock(mutex, &kLongAgo);
  return tried == ETIMEDOUT ? EBUSY : tried;
}

/// Whether it is one is in the kind of every initializer, so it stays where it is.
bool is_robust(const pthread_mutex_t* mutex) {
  constexpr int kRobust = 16;
  return (mutex->__data.__kind & kRobust) != 0;
}

/// What a call that takes a lock returned; told if all are told.
__attribute__((always_inline)) inline int taken(const pthread_mutex_t* mutex, int result, Takes how = Takes::kWaits) {
  if (__builtin_expect(!LockRecords::all(), 1)) return result;
  return karst::interpose::tell_mutex_taken(g_static_locks, mutex, result, how);
}
__attribute__((always_inline)) inline int taken(LockKinds& kinds, const volatile void* lock, int result,
                                                Takes how = Takes::kWaits) {
  if (__builtin_expect(!LockRecords::all(), 1)) return result;
  return karst::interpose::tell_taken(g_static_locks, kinds, const_cast<const void*>(lock), result, how);
}

/// A wait for a condition, in its zone.
template <typename Wait>
int waited_for_condition(const void* condition, const pthread_mutex_t* mutex, int timed_out, Wait wait) {
  const auto zone = [&] { return waited(g_condition_zone, condition, wait); };
  if (!LockRecords::all()) return zone();
  return karst::interpose::tell_condition(g_static_locks, mutex, timed_out, zone);
}

int try_mutex(pthread_mutex_t* mutex) {
  return __builtin_expect(is_robust(mutex), 0) ? try_robust(mutex) : g_pthread_mutex_trylock(mutex);
}

}  // namespace

KARST_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (is_off()) return g_pthread_mutex_lock(mutex);
  const int tried = try_mutex(mutex);
  if (__builtin_expect(tried != EBUSY, 1)) return taken(mutex, tried);
  return taken(mutex, waited(g_mutex_zone, mutex, holder_of(mutex), [&] { return g_pthread_mutex_lock(mutex); }));
}

KARST_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  if (is_off()) return g_pthread_mutex_timedlock(mutex, until);
  if (!is_usable(until)) return taken(mutex, g_pthread_mutex_timedlock(mutex, until), Takes::kGivesUp);
  const int tried = try_mutex(mutex);
  if (tried != EBUSY) return taken(mutex, tried, Takes::kGivesUp);
  return taken(mutex,
               waited(g_mutex_zone, mutex, holder_of(mutex), [&] { return g_pthread_mutex_timedlock(mutex, until); }),
               Takes::kGivesUp);
}

KARST_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  if (is_off()) return g_pthread_mutex_clocklock(mutex, clock, until);
  if (!is_usable(until, clock)) return taken(mutex, g_pthread_mutex_clocklock(mutex, clock, until), Takes::kGivesUp);
  const int tried = try_mutex(mutex);
  if (tried != EBUSY) return taken(mutex, tried, Takes::kGivesUp);
  return taken(
      mutex,
      waited(g_mutex_zone, mutex, holder_of(mutex), [&] { return g_pthread_mutex_clocklock(mutex, clock, until); }),
      Takes::kGivesUp);
}

KARST_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  if (is_off()) return g_pthread_rwlock_rdlock(lock);
  const int tried = g_pthread_rwlock_tryrdlock(lock);
  if (tried != EBUSY) return taken(LockRecords::shared, lock, tried);
  return taken(LockRecords::shared, lock,
               waited(g_shared_zone, lock, holder_of(lock), [&] { return g_pthread_rwlock_rdlock(lock); }));
}

KARST_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* until) {
  if (is_off()) return g_pthread_rwlock_timedrdlock(lock, until);
  if (!is_usable(until))
    return taken(LockRecords::shared, lock, g_pthread_rwlock_timedrdlock(lock, until), Takes::kGivesUp);
  const int tried = g_pthread_rwlock_tryrdlock(lock);
  if (tried != EBUSY) return taken(LockRecords::shared, lock, tried, Takes::kGivesUp);
  return taken(LockRecords::shared, lock,
               waited(g_shared_zone, lock, holder_of(lock), [&] { return g_pthread_rwlock_timedrdlock(lock, until); }),
               Takes::kGivesUp);
}

KARST_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  if (is_off()) return g_pthread_rwlock_clockrdlock(lock, clock, until);
  if (!is_usable(until, clock))
    return taken(LockRecords::shared, lock, g_pthread_rwlock_clockrdlock(lock, clock, until), Takes::kGivesUp);
  const int tried = g_pthread_rwlock_tryrdlock(lock);
  if (tried != EBUSY) return taken(LockRecords::shared, lock, tried, Takes::kGivesUp);
  return taken(
      LockRecords::shared, lock,
      waited(g_shared_zone, lock, holder_of(lock), [&] { return g_pthread_rwlock_clockrdlock(lock, clock, until); }),
      Takes::kGivesUp);
}

KARST_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  if (is_off()) return g_pthread_rwlock_wrlock(lock);
  const int tried = g_pthread_rwlock_trywrlock(lock);
  if (tried != EBUSY) return taken(LockRecords::exclusive, lock, tried);
  return taken(LockRecords::exclusive, lock,
               waited(g_exclusive_zone, lock, holder_of(lock), [&] { return g_pthread_rwlock_wrlock(lock); }));
}

KARST_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* until) {
  if (is_off()) return g_pthread_rwlock_timedwrlock(lock, until);
  if (!is_usable(until))
    return taken(LockRecords::exclusive, lock, g_pthread_rwlock_timedwrlock(lock, until), Takes::kGivesUp);
  const int tried = g_pthread_rwlock_trywrlock(lock);
  if (tried != EBUSY) return taken(LockRecords::exclusive, lock, tried, Takes::kGivesUp);
  return taken(
      LockRecords::exclusive, lock,
      waited(g_exclusive_zone, lock, holder_of(lock), [&] { return g_pthread_rwlock_timedwrlock(lock, until); }),
      Takes::kGivesUp);
}

KARST_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  if (is_off()) return g_pthread_rwlock_clockwrlock(lock, clock, until);
  if (!is_usable(until, clock))
    return taken(LockRecords::exclusive, lock, g_pthread_rwlock_clockwrlock(lock, clock, until), Takes::kGivesUp);
  const int tried = g_pthread_rwlock_trywrlock(lock);
  if (tried != EBUSY) return taken(LockRecords::exclusive, lock, tried, Takes::kGivesUp);
  return taken(
      LockRecords::exclusive, lock,
      waited(g_exclusive_zone, lock, holder_of(lock), [&] { return g_pthread_rwlock_clockwrlock(lock, clock, until); }),
      Takes::kGivesUp);
}

KARST_EXPORT int pthread_spin_lock(pthread_spinlock_t* lock) {
  if (is_off()) return g_pthread_spin_lock(lock);
  const int tried = g_pthread_spin_trylock(lock);
  if (tried != EBUSY) return taken(LockRecords::spin, lock, tried);
  return taken(LockRecords::spin, lock,
               waited(g_spin_zone, const_cast<const int*>(lock), [&] { return g_pthread_spin_lock(lock); }));
}

// Default for those that name the version of 2.3.2; see libkarst-locks.map.
KARST_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (is_off()) return g_pthread_cond_wait(condition, mutex);
  return waited_for_condition(condition, mutex, ETIMEDOUT, [&] { return g_pthread_cond_wait(condition, mutex); });
}

KARST_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  if (is_off()) return g_pthread_cond_timedwait(condition, mutex, until);
  return waited_for_condition(condition, mutex, ETIMEDOUT,
                              [&] { return g_pthread_cond_timedwait(condition, mutex, until); });
}

KARST_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                        const timespec* until) {
  if (is_off()) return g_pthread_cond_clockwait(condition, mutex, clock, until);
  return waited_for_condition(condition, mutex, ETIMEDOUT,
                              [&] { return g_pthread_cond_clockwait(condition, mutex, clock, until); });
}

KARST_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) {
  if (is_off()) return g_pthread_barrier_wait(barrier);
  return waited(g_barrier_zone, barrier, [&] { return g_pthread_barrier_wait(barrier); });
}

KARST_EXPORT int sem_wait(sem_t* semaphore) {
  if (is_off()) return g_sem_wait(semaphore);
  pthread_testcancel();
  if (take_at_once(semaphore)) return 0;
  return waited(g_semaphore_zone, semaphore, [&] { return g_sem_wait(semaphore); });
}

KARST_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  if (is_off()) return g_sem_timedwait(semaphore, until);
  if (!is_usable(until)) return g_sem_timedwait(semaphore, until);
  pthread_testcancel();
  if (take_at_once(semaphore)) return 0;
  return waited(g_semaphore_zone, semaphore, [&] { return g_sem_timedwait(semaphore, until); });
}

// This one, unlike the others, is no cancellation point while the semaphore is free.
KARST_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  if (is_off()) return g_sem_clockwait(semaphore, clock, until);
  if (!is_usable(until, clock)) return g_sem_clockwait(semaphore, clock, until);
  if (take_at_once(semaphore)) return 0;
  return waited(g_semaphore_zone, semaphore, [&] { return g_sem_clockwait(semaphore, clock, until); });
}

KARST_EXPORT int mtx_lock(mtx_t* mutex) {
  if (is_off()) return g_mtx_lock(mutex);
  const int tried = g_mtx_trylock(mutex);
  if (tried != thrd_busy) return taken(posix(mutex), tried);
  return taken(posix(mutex), waited(g_mutex_zone, mutex, holder_of(posix(mutex)), [&] { return g_mtx_lock(mutex); }));
}

KARST_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* until) {
  if (is_off()) return g_mtx_timedlock(mutex, until);
  if (!is_usable(until)) return taken(posix(mutex), g_mtx_timedlock(mutex, until), Takes::kGivesUp);
  const int tried = g_mtx_trylock(mutex);
  if (tried != thrd_busy) return taken(posix(mutex), tried, Takes::kGivesUp);
  return taken(posix(mutex),
               waited(g_mutex_zone, mutex, holder_of(posix(mutex)), [&] { return g_mtx_timedlock(mutex, until); }),
               Takes::kGivesUp);
}

KARST_EXPORT int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  if (is_off()) return g_cnd_wait(condition, mutex);
  return waited_for_condition(condition, posix(mutex), thrd_timedout, [&] { return g_cnd_wait(condition, mutex); });
}

KARST_EXPORT int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  if (is_off()) return g_cnd_timedwait(condition, mutex, until);
  return waited_for_condition(condition, posix(mutex), thrd_timedout,
                              [&] { return g_cnd_timedwait(condition, mutex, until); });
}

// What follows is told of all locks only.

KARST_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  return taken(mutex, g_pthread_mutex_trylock(mutex), Takes::kGivesUp);
}

KARST_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (__builtin_expect(!LockRecords::all(), 1)) return g_pthread_mutex_unlock(mutex);
  return karst::interpose::tell_mutex_released(mutex, [=] { return g_pthread_mutex_unlock(mutex); });
}

KARST_EXPORT int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  return tell_made(LockRecords::mutex, mutex, g_pthread_mutex_init(mutex, attributes));
}

KARST_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) {
  return taken(LockRecords::shared, lock, g_pthread_rwlock_tryrdlock(lock), Takes::kGivesUp);
}

KARST_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) {
  return taken(LockRecords::exclusive, lock, g_pthread_rwlock_trywrlock(lock), Takes::kGivesUp);
}

KARST_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  if (__builtin_expect(!LockRecords::all(), 1)) return g_pthread_rwlock_unlock(lock);
  return karst::interpose::tell_released(LockRecords::exclusive, lock, [=] { return g_pthread_rwlock_unlock(lock); });
}

KARST_EXPORT int pthread_rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* attributes) {
  return tell_made(LockRecords::exclusive, lock, g_pthread_rwlock_init(lock, attributes));
}

KARST_EXPORT int pthread_spin_trylock(pthread_spinlock_t* lock) {
  return taken(LockRecords::spin, lock, g_pthread_spin_trylock(lock), Takes::kGivesUp);
}

KARST_EXPORT int pthread_spin_unlock(pthread_spinlock_t* lock) {
  if (__builtin_expect(!LockRecords::all(), 1)) return g_pthread_spin_unlock(lock);
  return karst::interpose::tell_released(LockRecords::spin, const_cast<const int*>(lock),
                                         [=] { return g_pthread_spin_unlock(lock); });
}

KARST_EXPORT int pthread_spin_init(pthread_spinlock_t* lock, int shared) {
  return tell_made(LockRecords::spin, const_cast<const int*>(lock), g_pthread_spin_init(lock, shared));
}

KARST_EXPORT int mtx_trylock(mtx_t* mutex) { return taken(posix(mutex), g_mtx_trylock(mutex), Takes::kGivesUp); }

KARST_EXPORT int mtx_unlock(mtx_t* mutex) {
  if (__builtin_expect(!LockRecords::all(), 1)) return g_mtx_unlock(mutex);
  return karst::interpose::tell_mutex_released(posix(mutex), [=] { return g_mtx_unlock(mutex); });
}

KARST_EXPORT int mtx_init(mtx_t* mutex, int kind) {
  return tell_made(LockRecords::mutex, mutex, g_mtx_init(mutex, kind));
}
