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

/// A kind of wait: its name, and a function whose frame is there while such a wait is open.
struct Kind {
  karst_name name;
  int (*inside)(int (*wait)(void*), void* given);
};

/// A frame of inside() names its kind, as language specific data. So libkarst can end the zone where a thread is
/// cancelled in its wait, or calls pthread_exit() in a handler (runtime/hooks/unwind.cc). A cleanup of libc's would not
/// do: after a handler jumped out of the wait it would still be there, and run on what that stack has become.
#define KARST_KIND(kind, text)                                                                           \
  extern Kind g_##kind;                                                                                  \
  __attribute__((noinline, section("karst_waits"))) int inside_##kind(int (*wait)(void*), void* given) { \
    asm volatile(".cfi_lsda 0x1b, %c0" : : "i"(&g_##kind)); /* pcrel | sdata4 */                         \
    const int result = wait(given);                                                                      \
    asm volatile(""); /* as a tail call it would have no frame */                                        \
    return result;                                                                                       \
  }                                                                                                      \
  constinit Kind g_##kind{{text, nullptr, 0, 0}, inside_##kind};
KARST_KIND(mutex, "wait for mutex")
KARST_KIND(shared, "wait for rwlock (shared)")
KARST_KIND(exclusive, "wait for rwlock")
KARST_KIND(spin, "wait for spinlock")
KARST_KIND(condition, "wait for condition")
KARST_KIND(semaphore, "wait for semaphore")
KARST_KIND(barrier, "wait for barrier")

/// The code of all inside(), by the linker.
extern "C" __attribute__((visibility("hidden"))) const char __start_karst_waits[];
extern "C" __attribute__((visibility("hidden"))) const char __stop_karst_waits[];

void note_lock(karst_name* name, const void* lock, int holder) {
  KARST_NOTE_(void, lock_wait, (karst_name*, const void*, uint32_t), (name, lock, static_cast<uint32_t>(holder)))
}
void note_wait(karst_name* name, const void* lock) { KARST_NOTE_(void, wait, (karst_name*, const void*), (name, lock)) }

template <typename Wait>
int in_zone(Kind& kind, Wait& wait) {
  karst_zone_enter_(&kind.name);
  const int result = kind.inside([](void* given) { return (*static_cast<Wait*>(given))(); }, &wait);
  karst_name* name = &kind.name;
  karst_zone_leave_(&name);
  return result;
}

/// `wait` in a zone. Never inlined, so that the way of a free lock stays short.
template <typename Wait>
__attribute__((noinline)) int waited(Kind& kind, const void* lock, int holder, Wait wait) {
  note_lock(&kind.name, lock, holder);
  return in_zone(kind, wait);
}

/// The same of what no thread has.
template <typename Wait>
__attribute__((noinline)) int waited(Kind& kind, const void* lock, Wait wait) {
  note_wait(&kind.name, lock);
  return in_zone(kind, wait);
}

int holder_of(const pthread_mutex_t* mutex) { return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED); }
int holder_of(const pthread_rwlock_t* lock) { return __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED); }

/// X(name, version) of all functions of whoever stands behind us, libc or a sanitizer.
#define KARST_NEXT_FUNCTIONS(X)          \
  X(pthread_mutex_lock, nullptr)         \
  X(pthread_mutex_trylock, nullptr)      \
  X(pthread_mutex_timedlock, nullptr)    \
  X(pthread_mutex_clocklock, nullptr)    \
  X(pthread_rwlock_rdlock, nullptr)      \
  X(pthread_rwlock_tryrdlock, nullptr)   \
  X(pthread_rwlock_timedrdlock, nullptr) \
  X(pthread_rwlock_clockrdlock, nullptr) \
  X(pthread_rwlock_wrlock, nullptr)      \
  X(pthread_rwlock_trywrlock, nullptr)   \
  X(pthread_rwlock_timedwrlock, nullptr) \
  X(pthread_rwlock_clockwrlock, nullptr) \
  X(pthread_spin_lock, nullptr)          \
  X(pthread_spin_trylock, nullptr)       \
  X(pthread_cond_clockwait, nullptr)     \
  X(pthread_barrier_wait, nullptr)       \
  X(sem_wait, nullptr)                   \
  X(sem_trywait, nullptr)                \
  X(sem_timedwait, nullptr)              \
  X(sem_clockwait, nullptr)              \
  X(mtx_lock, nullptr)                   \
  X(mtx_trylock, nullptr)                \
  X(mtx_timedlock, nullptr)              \
  X(cnd_wait, nullptr)                   \
  X(cnd_timedwait, nullptr)              \
  X(pthread_cond_wait, "GLIBC_2.3.2")    \
  X(pthread_cond_timedwait, "GLIBC_2.3.2")

void find_next();

/// The type of a pointer to such a function, without its noexcept.
template <typename... Arguments>
auto pointer_to(int (*)(Arguments...)) -> int (*)(Arguments...);

/// g_NAME is where that function is. It begins as one that finds all, so that no call has to look.
#define KARST_NEXT(name, version)                                               \
  constinit decltype(pointer_to(&(name))) g_##name = [](auto... given) -> int { \
    find_next();                                                                \
    return g_##name(given...);                                                  \
  };
KARST_NEXT_FUNCTIONS(KARST_NEXT)

template <typename Function>
void find_function(Function& found, const char* name, const char* version) {
  void* function = version != nullptr ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
  __atomic_store_n(&found, reinterpret_cast<Function>(function), __ATOMIC_RELAXED);
}

/// dlsym() takes no memory where it succeeds. It takes the loader's lock, which a thread may have that waits for this
/// one: hence all are found before the program begins, or as a constructor that comes before ours takes a lock.
__attribute__((noinline, cold)) void find_next() {
#define KARST_FIND_NEXT(name, version) find_function(g_##name, #name, version);
  KARST_NEXT_FUNCTIONS(KARST_FIND_NEXT)
}

// libkarst's own constructor comes before all others.
__attribute__((constructor)) void begin() {
  find_next();
  void (*tell_frames)(const void*, const void*);
  KARST_FIND_(tell_frames, wait_frames);
  if (tell_frames != nullptr) tell_frames(__start_karst_waits, __stop_karst_waits);
  void (*enter)(karst_name*, bool);
  KARST_FIND_(enter, name_wait);
  if (enter == nullptr) return;
  for (Kind* kind : {&g_mutex, &g_shared, &g_exclusive}) enter(&kind->name, true);
  for (Kind* kind : {&g_spin, &g_condition, &g_semaphore, &g_barrier}) enter(&kind->name, false);
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

int try_mutex(pthread_mutex_t* mutex) {
  return __builtin_expect(is_robust(mutex), 0) ? try_robust(mutex) : g_pthread_mutex_trylock(mutex);
}

}  // namespace

KARST_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) {
  const int tried = try_mutex(mutex);
  if (__builtin_expect(tried != EBUSY, 1)) return tried;
  return waited(g_mutex, mutex, holder_of(mutex), [&] { return g_pthread_mutex_lock(mutex); });
}

KARST_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  if (!is_usable(until)) return g_pthread_mutex_timedlock(mutex, until);
  const int tried = try_mutex(mutex);
  if (tried != EBUSY) return tried;
  return waited(g_mutex, mutex, holder_of(mutex), [&] { return g_pthread_mutex_timedlock(mutex, until); });
}

KARST_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  if (!is_usable(until, clock)) return g_pthread_mutex_clocklock(mutex, clock, until);
  const int tried = try_mutex(mutex);
  if (tried != EBUSY) return tried;
  return waited(g_mutex, mutex, holder_of(mutex), [&] { return g_pthread_mutex_clocklock(mutex, clock, until); });
}

KARST_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  const int tried = g_pthread_rwlock_tryrdlock(lock);
  if (tried != EBUSY) return tried;
  return waited(g_shared, lock, holder_of(lock), [&] { return g_pthread_rwlock_rdlock(lock); });
}

KARST_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* until) {
  if (!is_usable(until)) return g_pthread_rwlock_timedrdlock(lock, until);
  const int tried = g_pthread_rwlock_tryrdlock(lock);
  if (tried != EBUSY) return tried;
  return waited(g_shared, lock, holder_of(lock), [&] { return g_pthread_rwlock_timedrdlock(lock, until); });
}

KARST_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  if (!is_usable(until, clock)) return g_pthread_rwlock_clockrdlock(lock, clock, until);
  const int tried = g_pthread_rwlock_tryrdlock(lock);
  if (tried != EBUSY) return tried;
  return waited(g_shared, lock, holder_of(lock), [&] { return g_pthread_rwlock_clockrdlock(lock, clock, until); });
}

KARST_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  const int tried = g_pthread_rwlock_trywrlock(lock);
  if (tried != EBUSY) return tried;
  return waited(g_exclusive, lock, holder_of(lock), [&] { return g_pthread_rwlock_wrlock(lock); });
}

KARST_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* until) {
  if (!is_usable(until)) return g_pthread_rwlock_timedwrlock(lock, until);
  const int tried = g_pthread_rwlock_trywrlock(lock);
  if (tried != EBUSY) return tried;
  return waited(g_exclusive, lock, holder_of(lock), [&] { return g_pthread_rwlock_timedwrlock(lock, until); });
}

KARST_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* until) {
  if (!is_usable(until, clock)) return g_pthread_rwlock_clockwrlock(lock, clock, until);
  const int tried = g_pthread_rwlock_trywrlock(lock);
  if (tried != EBUSY) return tried;
  return waited(g_exclusive, lock, holder_of(lock), [&] { return g_pthread_rwlock_clockwrlock(lock, clock, until); });
}

KARST_EXPORT int pthread_spin_lock(pthread_spinlock_t* lock) {
  const int tried = g_pthread_spin_trylock(lock);
  if (tried != EBUSY) return tried;
  return waited(g_spin, const_cast<const int*>(lock), [&] { return g_pthread_spin_lock(lock); });
}

// Default for those that name the version of 2.3.2; see libkarst-system.map.
KARST_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return waited(g_condition, condition, [&] { return g_pthread_cond_wait(condition, mutex); });
}

KARST_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  return waited(g_condition, condition, [&] { return g_pthread_cond_timedwait(condition, mutex, until); });
}

KARST_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                        const timespec* until) {
  return waited(g_condition, condition, [&] { return g_pthread_cond_clockwait(condition, mutex, clock, until); });
}

KARST_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) {
  return waited(g_barrier, barrier, [&] { return g_pthread_barrier_wait(barrier); });
}

KARST_EXPORT int sem_wait(sem_t* semaphore) {
  pthread_testcancel();
  if (take_at_once(semaphore)) return 0;
  return waited(g_semaphore, semaphore, [&] { return g_sem_wait(semaphore); });
}

KARST_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  if (!is_usable(until)) return g_sem_timedwait(semaphore, until);
  pthread_testcancel();
  if (take_at_once(semaphore)) return 0;
  return waited(g_semaphore, semaphore, [&] { return g_sem_timedwait(semaphore, until); });
}

// This one, unlike the others, is no cancellation point while the semaphore is free.
KARST_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  if (!is_usable(until, clock)) return g_sem_clockwait(semaphore, clock, until);
  if (take_at_once(semaphore)) return 0;
  return waited(g_semaphore, semaphore, [&] { return g_sem_clockwait(semaphore, clock, until); });
}

KARST_EXPORT int mtx_lock(mtx_t* mutex) {
  const int tried = g_mtx_trylock(mutex);
  if (tried != thrd_busy) return tried;
  return waited(g_mutex, mutex, holder_of(posix(mutex)), [&] { return g_mtx_lock(mutex); });
}

KARST_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* until) {
  if (!is_usable(until)) return g_mtx_timedlock(mutex, until);
  const int tried = g_mtx_trylock(mutex);
  if (tried != thrd_busy) return tried;
  return waited(g_mutex, mutex, holder_of(posix(mutex)), [&] { return g_mtx_timedlock(mutex, until); });
}

KARST_EXPORT int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return waited(g_condition, condition, [&] { return g_cnd_wait(condition, mutex); });
}

KARST_EXPORT int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return waited(g_condition, condition, [&] { return g_cnd_timedwait(condition, mutex, until); });
}
