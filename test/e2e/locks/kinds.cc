// Waits for each kind of lock once, in a function of its own, and says what its calls gave: the same with and without
// Karst. Threads meet by atomics alone, so that nothing else waits.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "asleep.h"
#include "karst/karst.h"

#define CALL __attribute__((noinline, noclone))

namespace {

constexpr unsigned kMicroseconds = 20'000;

std::mutex g_mutex;
std::timed_mutex g_timed;
std::shared_mutex g_shared;
std::condition_variable g_condition;
pthread_spinlock_t g_spin;
pthread_barrier_t g_barrier;
sem_t g_semaphore;
mtx_t g_c_mutex;
std::atomic<int> g_at;
std::atomic<pid_t> g_taking;   // about to take what another one has
std::atomic<pid_t> g_waiting;  // about to wait until it is woken
bool g_ready;

/// The other thread has come so far.
void await(int place) {
  while (g_at < place) usleep(100);
}

/// Takes the lock, has it until the other one waits for it, and lets go.
template <typename Lock, typename Unlock>
__attribute__((always_inline)) inline void hold(Lock lock, Unlock unlock, bool sleeps = true) {
  lock();
  ++g_at;
  while (g_taking == 0) usleep(100);
  if (sleeps) await_lock(g_taking);
  usleep(kMicroseconds);
  unlock();
}

/// The other thread waits, and has done so for a while. It may have slept before, where karst was asked for a name.
void await_waiting() {
  await_lock(g_waiting);
  usleep(kMicroseconds);
}

template <typename Hold, typename Take>
void contend(Hold hold_it, Take take_it) {
  const int before = g_at;
  g_taking = 0;
  std::thread other(hold_it);
  await(before + 1);
  g_taking = gettid();
  take_it();
  other.join();
}

}  // namespace

CALL void hold_mutex() {
  hold([] { g_mutex.lock(); }, [] { g_mutex.unlock(); });
}
CALL void take_mutex() { std::lock_guard guard(g_mutex); }
CALL void hold_timed() {
  hold([] { g_timed.lock(); }, [] { g_timed.unlock(); });
}
CALL bool take_timed() {
  const bool taken = g_timed.try_lock_for(std::chrono::seconds(10));
  if (taken) g_timed.unlock();
  return taken;
}
CALL void hold_shared() {
  hold([] { g_shared.lock(); }, [] { g_shared.unlock(); });
}
CALL void take_shared() { std::shared_lock guard(g_shared); }
CALL void take_exclusive() { std::unique_lock guard(g_shared); }
CALL void hold_spin() {
  hold([] { pthread_spin_lock(&g_spin); }, [] { pthread_spin_unlock(&g_spin); }, false);
}
CALL void take_spin() {
  pthread_spin_lock(&g_spin);
  pthread_spin_unlock(&g_spin);
}
CALL void hold_c() {
  hold([] { mtx_lock(&g_c_mutex); }, [] { mtx_unlock(&g_c_mutex); });
}
CALL void take_c() {
  mtx_lock(&g_c_mutex);
  mtx_unlock(&g_c_mutex);
}
CALL void wait_condition() {
  std::unique_lock guard(g_mutex);
  g_waiting = gettid();
  ++g_at;
  g_condition.wait(guard, [] { return g_ready; });
}
CALL void wait_semaphore() {
  g_waiting = gettid();
  ++g_at;
  sem_wait(&g_semaphore);
}
CALL void wait_barrier() {
  g_waiting = gettid();
  ++g_at;
  pthread_barrier_wait(&g_barrier);
}
CALL void wait_for_ever() {
  std::unique_lock guard(g_mutex);
  g_waiting = gettid();
  ++g_at;
  while (true) g_condition.wait(guard);
}

CALL int results() {
  int wrong = 0;
  const timespec refused{0, 2'000'000'000}, past{1, 0};
  sem_post(&g_semaphore);
  wrong += sem_timedwait(&g_semaphore, &refused) != -1 || errno != EINVAL;
  errno = 77;
  wrong += sem_wait(&g_semaphore) != 0 || errno != 77;
  wrong += sem_timedwait(&g_semaphore, &past) != -1 || errno != ETIMEDOUT;
  g_mutex.lock();
  wrong += pthread_mutex_timedlock(g_mutex.native_handle(), &past) != ETIMEDOUT;
  g_mutex.unlock();
  pthread_mutexattr_t checking;
  pthread_mutexattr_init(&checking);
  pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_t checked;
  pthread_mutex_init(&checked, &checking);
  wrong += pthread_mutex_lock(&checked) != 0 || pthread_mutex_lock(&checked) != EDEADLK;
  pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&checked, &checking);
  wrong += pthread_mutex_lock(&checked) != 0 || pthread_mutex_lock(&checked) != 0;
  auto* shared = static_cast<pthread_rwlock_t*>(g_shared.native_handle());
  wrong += pthread_rwlock_wrlock(shared) != 0 || pthread_rwlock_rdlock(shared) != EDEADLK;
  wrong += pthread_rwlock_timedrdlock(shared, &refused) != EINVAL;
  pthread_rwlock_unlock(shared);
  return wrong;
}

CALL void* cancelled(void*) {
  wait_for_ever();
  return nullptr;
}

int main() {
  karst_name_lock(&g_mutex, "the mutex");
  pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE);
  pthread_barrier_init(&g_barrier, nullptr, 2);
  sem_init(&g_semaphore, 0, 0);
  mtx_init(&g_c_mutex, mtx_plain);
  contend(hold_mutex, take_mutex);
  contend(hold_timed, take_timed);
  contend(hold_shared, take_shared);
  contend(hold_shared, take_exclusive);
  contend(hold_spin, take_spin);
  contend(hold_c, take_c);
  contend(wait_condition, [] {
    await_waiting();
    std::lock_guard guard(g_mutex);
    g_ready = true;
    g_condition.notify_one();
  });
  contend(wait_semaphore, [] {
    await_waiting();
    sem_post(&g_semaphore);
  });
  contend(wait_barrier, [] {
    await_waiting();
    pthread_barrier_wait(&g_barrier);
  });
  const int before = g_at;
  pthread_t thread;
  pthread_create(&thread, nullptr, cancelled, nullptr);
  await(before + 1);
  await_lock(g_waiting);
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  printf("%d %d\n", results(), result == PTHREAD_CANCELED);
}
