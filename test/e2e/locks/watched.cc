// One long wait for a lock of each kind, and one for a condition, which is none. The holder has each lock for 30 ms
// more once its waiter waits.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "asleep.h"
#include "karst/karst.h"

#define CALL __attribute__((noinline, noclone))

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t g_written = PTHREAD_RWLOCK_INITIALIZER, g_read = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t g_spin;
static pthread_mutex_t g_of_condition = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_condition = PTHREAD_COND_INITIALIZER;

constexpr unsigned kHeld = 30'000;
constexpr unsigned kHeldSpinning = 200'000;  // whoever spins cannot be seen to wait

template <typename Take, typename Give>
CALL void hold(Take take, Give give, void (*wait)(), bool spins = false) {
  take();
  std::atomic<pid_t> waiter{0};
  std::thread thread([&] {
    waiter = gettid();
    wait();
  });
  while (waiter == 0) usleep(50);
  if (!spins) await_lock(waiter);
  usleep(spins ? kHeldSpinning : kHeld);
  give();
  thread.join();
}

CALL void take_mutex() {
  pthread_mutex_lock(&g_mutex);
  pthread_mutex_unlock(&g_mutex);
}
CALL void write_table() {
  pthread_rwlock_wrlock(&g_written);
  pthread_rwlock_unlock(&g_written);
}
CALL void read_table() {
  pthread_rwlock_rdlock(&g_read);
  pthread_rwlock_unlock(&g_read);
}
CALL void take_spin() {
  pthread_spin_lock(&g_spin);
  pthread_spin_unlock(&g_spin);
}
CALL void await_condition() {
  pthread_mutex_lock(&g_of_condition);
  pthread_cond_wait(&g_condition, &g_of_condition);
  pthread_mutex_unlock(&g_of_condition);
}
CALL void signal_condition() {
  std::atomic<pid_t> waiter{0};
  std::thread thread([&] {
    waiter = gettid();
    await_condition();
  });
  while (waiter == 0) usleep(50);
  await_lock(waiter);
  usleep(kHeld);
  pthread_mutex_lock(&g_of_condition);
  pthread_cond_signal(&g_condition);
  pthread_mutex_unlock(&g_of_condition);
  thread.join();
}
CALL void block() { usleep(kHeld); }

int main() {
  pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE);
  karst_name_lock(&g_mutex, "cache");
  hold([] { pthread_mutex_lock(&g_mutex); }, [] { pthread_mutex_unlock(&g_mutex); }, take_mutex);
  hold([] { pthread_rwlock_wrlock(&g_written); }, [] { pthread_rwlock_unlock(&g_written); }, write_table);
  hold([] { pthread_rwlock_wrlock(&g_read); }, [] { pthread_rwlock_unlock(&g_read); }, read_table);
  hold([] { pthread_spin_lock(&g_spin); }, [] { pthread_spin_unlock(&g_spin); }, take_spin, true);
  signal_condition();
  block();
  puts("done");
}
