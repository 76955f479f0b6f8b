// Stands before libc's locks. A function tries the lock first; if it is free that is all, at the cost of one call more.
// Else the wait is a zone, whose arguments are the lock's address and the thread that has it (format/lock.h).
//
// Who has a mutex or writes under a rwlock glibc keeps in the lock, by the kernel's number. That is read without a
// lock: an answer that is out of date names who had it a moment ago.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <threads.h>
#include <time.h>

#include <initializer_list>

#include "karst/karst.h"

#define KARST_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

/// Names of waits, one of each kind of lock and way to take it.
karst_name g_mutex{"wait for mutex", nullptr, 0, 0};
karst_name g_shared{"wait for rwlock (shared)", nullptr, 0, 0};
karst_name g_exclusive{"wait for rwlock", nullptr, 0, 0};
karst_name g_spin{"wait for spinlock", nullptr, 0, 0};
karst_name g_condition{"wait for condition", nullptr, 0, 0};
karst_name g_semaphore{"wait for semaphore", nullptr, 0, 0};
karst_name g_barrier{"wait for barrier", nullptr, 0, 0};

/// The function of that name of whoever stands behind us, found at the first call. dlsym() takes no memory where it
/// succeeds. `type` says what function it is; it is not called.
template <typename Result, typename... Arguments>
class Next {
 public:
  using Function = Result(Arguments...);
  constexpr Next(Function* /*type*/, const char* name, const char* version = nullptr)
      : name_(name), version_(version) {}

  Function* operator*() {
    Function* found = __atomic_load_n(&found_, __ATOMIC_RELAXED);
    return __builtin_expect(found != nullptr, 1) ? found : find();
  }

 private:
  __attribute__((noinline, cold)) Function* find() {
    void* found = version_ != nullptr ? dlvsym(RTLD_NEXT, name_, version_) : dlsym(RTLD_NEXT, name_);
    auto* function = reinterpret_cast<Function*>(found);
    __atomic_store_n(&found_, function, __ATOMIC_RELAXED);
    return function;
  }

  const char* name_;
  const char* version_;
  Function* found_ = nullptr;
};

void note_lock(karst_name* name, const void* lock, int holder) {
  KARST_NOTE_(void, lock_wait, (karst_name*, const void*, uint32_t), (name, lock, static_cast<uint32_t>(holder)))
}
void note_wait(karst_name* name, const void* lock) { KARST_NOTE_(void, wait, (karst_name*, const void*), (name, lock)) }

// libkarst's own constructor comes before all others.
__attribute__((constructor)) void enter_names() {
  void (*enter)(karst_name*, bool);
  KARST_FIND_(enter, name_wait);
  if (enter == nullptr) return;
  for (karst_name* name : {&g_mutex, &g_shared, &g_exclusive}) enter(name, true);
  for (karst_name* name : {&g_spin, &g_condition, &g_semaphore, &g_barrier}) enter(name, false);
}

/// `wait` in a zone. Never inlined, so that the way of a free lock stays short.
template <typename Wait>
__attribute__((noinline)) int waited(karst_name* kind, const void* lock, int holder, Wait wait) {
  note_lock(kind, lock, holder);
  karst_zone_enter_(kind);
  const int result = wait();
  karst_zone_leave_(&kind);
  return result;
}

void leave(void* kind) {
  auto* name = static_cast<karst_name*>(kind);
  karst_zone_leave_(&name);
}

/// The same of what no thread has. These are cancellation points, but for the barrier: libc calls leave() then.
template <typename Wait>
__attribute__((noinline)) int waited(karst_name* kind, const void* lock, Wait wait) {
  note_wait(kind, lock);
  karst_zone_enter_(kind);
  int result = 0;
  pthread_cleanup_push(leave, kind);
  result = wait();
  pthread_cleanup_pop(1);
  return result;
}

int holder_of(const pthread_mutex_t* mutex) { return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED); }
int holder_of(const pthread_rwlock_t* lock) { return __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED); }

#define KARST_NEXT(name) constinit Next g_##name(&(name), #name)
KARST_NEXT(pthread_mutex_lock);
KARST_NEXT(pthread_mutex_trylock);
KARST_NEXT(pthread_mutex_timedlock);
KARST_NEXT(pthread_mutex_clocklock);
KARST_NEXT(pthread_rwlock_rdlock);
KARST_NEXT(pthread_rwlock_tryrdlock);
KARST_NEXT(pthread_rwlock_timedrdlock);
KARST_NEXT(pthread_rwlock_clockrdlock);
KARST_NEXT(pthread_rwlock_wrlock);
KARST_NEXT(pthread_rwlock_trywrlock);
KARST_NEXT(pthread_rwlock_timedwrlock);
KARST_NEXT(pthread_rwlock_clockwrlock);
KARST_NEXT(pthread_spin_lock);
KARST_NEXT(pthread_spin_trylock);
KARST_NEXT(pthread_cond_clockwait);
KARST_NEXT(pthread_barrier_wait);
KARST_NEXT(sem_wait);
KARST_NEXT(sem_trywait);
KARST_NEXT(sem_timedwait);
KARST_NEXT(sem_clockwait);
KARST_NEXT(mtx_lock);
KARST_NEXT(mtx_trylock);
KARST_NEXT(mtx_timedlock);
KARST_NEXT(cnd_wait);
KARST_NEXT(cnd_timedwait);
constinit Next g_pthread_cond_wait(&pthread_cond_wait, "pthread_cond_wait", "GLIBC_2.3.2");
constinit Next g_pthread_cond_timedwait(&pthread_cond_timedwait, "pthread_cond_timedwait", "GLIBC_2.3.2");

/// Some functions refuse a time or a clock before they look at the lock; those calls are libc's alone.
bool is_usable(const timespec* until, clockid_t clock = CLOCK_REALTIME) {
  return static_cast<unsigned long>(until->tv_nsec) < 1'000'000'000 &&
         (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC);
}

/// The mutex of C11 is one of POSIX's.
const pthread_mutex_t* posix(const mtx_t* mutex) { return reinterpret_cast<const pthread_mutex_t*>(mutex); }

/// sem_trywait() is no cancellation point, and leaves its mark in errno.
bool take_at_once(sem_t* semaphore) {
  pthread_testcancel();
  const int before = errno;
  const bool taken = (*g_sem_trywait)(semaphore) == 0;
  errno = before;
  return taken;
}

}  // namespace

KARST_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) {
  const int tried = (*g_pthread_mutex_trylock)(mutex);
  if (__builtin_expect(tried != EBUSY, 1)) return tried;
  return waited(&g_mutex, mutex, holder_of(mutex), [&] { return (*g_pthread_mutex_lock)(mutex); });
}

KARST_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  if (!is_usable(until)) return (*g_pthread_mutex_timedlock)(mutex, until);
  const int tried = (*g_pthread_mutex_trylock)(mutex);
  if (tried != EBUSY) return tried;
  return waited(&g_mutex, mutex, holder_of(mutex), [&] { return (*g_pthread_mutex_timedlock)(mutex, until); });
}

KARST_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  if (!is_usable(until, clock)) return (*g_pthread_mutex_clocklock)(mutex, clock, until);
  const int tried = (*g_pthread_mutex_trylock)(mutex);
  if (tried != EBUSY) return tried;
  return waited(&g_mutex, mutex, holder_of(mutex), [&] { return (*g_pthread_mutex_clocklock)(mutex, clock, until); });
}

KARST_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  const int tried = (*g_pthread_rwlock_tryrdlock)(lock);
  if (tried != EBUSY) return tried;
  return waited(&g_shared, lock, holder_of(lock), [&] { return (*g_pthread_rwlock_rdlock)(lock); });
}

KARST_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* until) {
  if (!is_usable(until)) return (*g_pthread_rwlock_timedrdlock)(lock, until);
  const int tried = (*g_pthread_rwlock_tryrdlock)(lock);
  if (tried != EBUSY) return tried;
  return waited(&g_shared, lock, holder_of(lock), [&] { return (*g_pthread_rwlock_timedrdlock)(lock, until); });
}

KARST_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  if (!is_usable(until, clock)) return (*g_pthread_rwlock_clockrdlock)(lock, clock, until);
  const int tried = (*g_pthread_rwlock_tryrdlock)(lock);
  if (tried != EBUSY) return tried;
  return waited(&g_shared, lock, holder_of(lock), [&] { return (*g_pthread_rwlock_clockrdlock)(lock, clock, until); });
}

KARST_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  const int tried = (*g_pthread_rwlock_trywrlock)(lock);
  if (tried != EBUSY) return tried;
  return waited(&g_exclusive, lock, holder_of(lock), [&] { return (*g_pthread_rwlock_wrlock)(lock); });
}

KARST_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* until) {
  if (!is_usable(until)) return (*g_pthread_rwlock_timedwrlock)(lock, until);
  const int tried = (*g_pthread_rwlock_trywrlock)(lock);
  if (tried != EBUSY) return tried;
  return waited(&g_exclusive, lock, holder_of(lock), [&] { return (*g_pthread_rwlock_timedwrlock)(lock, until); });
}

KARST_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  if (!is_usable(until, clock)) return (*g_pthread_rwlock_clockwrlock)(lock, clock, until);
  const int tried = (*g_pthread_rwlock_trywrlock)(lock);
  if (tried != EBUSY) return tried;
  return waited(&g_exclusive, lock, holder_of(lock),
                [&] { return (*g_pthread_rwlock_clockwrlock)(lock, clock, until); });
}

KARST_EXPORT int pthread_spin_lock(pthread_spinlock_t* lock) {
  const int tried = (*g_pthread_spin_trylock)(lock);
  if (tried != EBUSY) return tried;
  return waited(&g_spin, const_cast<const int*>(lock), [&] { return (*g_pthread_spin_lock)(lock); });
}

// Default for those that name the version of 2.3.2; see libkarst-system.map.
KARST_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return waited(&g_condition, condition, [&] { return (*g_pthread_cond_wait)(condition, mutex); });
}

KARST_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  return waited(&g_condition, condition, [&] { return (*g_pthread_cond_timedwait)(condition, mutex, until); });
}

KARST_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                        const timespec* until) {
  return waited(&g_condition, condition, [&] { return (*g_pthread_cond_clockwait)(condition, mutex, clock, until); });
}

KARST_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) {
  return waited(&g_barrier, barrier, [&] { return (*g_pthread_barrier_wait)(barrier); });
}

KARST_EXPORT int sem_wait(sem_t* semaphore) {
  if (take_at_once(semaphore)) return 0;
  return waited(&g_semaphore, semaphore, [&] { return (*g_sem_wait)(semaphore); });
}

KARST_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  if (!is_usable(until)) return (*g_sem_timedwait)(semaphore, until);
  if (take_at_once(semaphore)) return 0;
  return waited(&g_semaphore, semaphore, [&] { return (*g_sem_timedwait)(semaphore, until); });
}

KARST_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  if (!is_usable(until, clock)) return (*g_sem_clockwait)(semaphore, clock, until);
  if (take_at_once(semaphore)) return 0;
  return waited(&g_semaphore, semaphore, [&] { return (*g_sem_clockwait)(semaphore, clock, until); });
}

KARST_EXPORT int mtx_lock(mtx_t* mutex) {
  const int tried = (*g_mtx_trylock)(mutex);
  if (tried != thrd_busy) return tried;
  return waited(&g_mutex, mutex, holder_of(posix(mutex)), [&] { return (*g_mtx_lock)(mutex); });
}

KARST_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* until) {
  if (!is_usable(until)) return (*g_mtx_timedlock)(mutex, until);
  const int tried = (*g_mtx_trylock)(mutex);
  if (tried != thrd_busy) return tried;
  return waited(&g_mutex, mutex, holder_of(posix(mutex)), [&] { return (*g_mtx_timedlock)(mutex, until); });
}

KARST_EXPORT int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return waited(&g_condition, condition, [&] { return (*g_cnd_wait)(condition, mutex); });
}

KARST_EXPORT int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return waited(&g_condition, condition, [&] { return (*g_cnd_timedwait)(condition, mutex, until); });
}
