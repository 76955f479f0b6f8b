// held convoy|pairs|deadlock|philosophers|readers|fork|throws|cancelled: one thing that may happen while locks are
// held.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "asleep.h"

#define CALL __attribute__((noinline, noclone))

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER, g_other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t g_table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t g_spin;
static pthread_cond_t g_never = PTHREAD_COND_INITIALIZER;

CALL void take_turn() {
  pthread_mutex_lock(&g_lock);
  usleep(2'000);
  pthread_mutex_unlock(&g_lock);
}
/// So many threads sleep for the lock before it is let go.
CALL void let_wait(int waiters) {
  std::vector<std::thread> threads;
  pthread_mutex_lock(&g_lock);
  for (int i = 0; i < waiters; ++i) {
    std::atomic<pid_t> waiter{0};
    threads.emplace_back([&] {
      waiter = gettid();
      take_turn();
    });
    while (waiter == 0) usleep(50);
    await_sleep(waiter);
  }
  pthread_mutex_unlock(&g_lock);
  for (std::thread& thread : threads) thread.join();
}

CALL void take_both(pthread_mutex_t* first, pthread_mutex_t* second, pthread_barrier_t* both) {
  pthread_mutex_lock(first);
  pthread_barrier_wait(both);
  pthread_mutex_lock(second);  // for ever
}
CALL void deadlock() {
  static pthread_barrier_t both;
  pthread_barrier_init(&both, nullptr, 2);
  static std::atomic<pid_t> ids[2];
  std::thread([] {
    ids[0] = gettid();
    take_both(&g_lock, &g_other, &both);
  }).detach();
  std::thread([] {
    ids[1] = gettid();
    take_both(&g_other, &g_lock, &both);
  }).detach();
  for (std::atomic<pid_t>& id : ids) {
    while (id == 0) usleep(50);
    await_sleep(id);
  }
  usleep(20'000);
  _exit(0);
}

/// As many as there are locks, each with its left one, for its right one.
CALL void philosophers() {
  constexpr int kCount = 5;
  static pthread_mutex_t forks[kCount];
  static pthread_barrier_t all;
  static std::atomic<pid_t> ids[kCount];
  pthread_barrier_init(&all, nullptr, kCount + 1);
  for (int i = 0; i < kCount; ++i) {
    pthread_mutex_init(&forks[i], nullptr);
    std::thread([i] {
      ids[i] = gettid();
      take_both(&forks[i], &forks[(i + 1) % kCount], &all);
    }).detach();
  }
  pthread_barrier_wait(&all);
  usleep(20'000);
  for (std::atomic<pid_t>& id : ids) await_sleep(id);
  _exit(0);
}

CALL void read_table(std::atomic<int>& readers, const std::atomic<bool>& done) {
  pthread_rwlock_rdlock(&g_table);
  ++readers;
  while (!done) usleep(100);
  pthread_rwlock_unlock(&g_table);
}
CALL void write_table() {
  pthread_rwlock_wrlock(&g_table);
  pthread_rwlock_unlock(&g_table);
}
CALL void spin_long(std::atomic<int>& readers, const std::atomic<bool>& done) {
  pthread_spin_lock(&g_spin);
  ++readers;
  while (!done) usleep(100);
  pthread_spin_unlock(&g_spin);
}
CALL void spin_too() {
  pthread_spin_lock(&g_spin);
  pthread_spin_unlock(&g_spin);
}
CALL void readers() {
  std::atomic<int> there{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { read_table(there, done); });
  threads.emplace_back([&] { spin_long(there, done); });
  while (there != 4) usleep(50);
  std::atomic<pid_t> writer{0};
  threads.emplace_back([&] {
    writer = gettid();
    write_table();
  });
  threads.emplace_back([] { spin_too(); });
  while (writer == 0) usleep(50);
  await_sleep(writer);
  usleep(50'000);
  done = true;
  for (std::thread& thread : threads) thread.join();
}

CALL void in_child() {
  pthread_mutex_unlock(&g_lock);
  pthread_mutex_lock(&g_lock);
  pthread_mutex_unlock(&g_lock);
}
CALL void fork_in_hold() {
  pthread_mutex_lock(&g_lock);
  const pid_t child = fork();
  if (child == 0) {
    in_child();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  pthread_mutex_unlock(&g_lock);
  printf("child: %d\n", WEXITSTATUS(status));
}

struct Guard {
  Guard() { pthread_mutex_lock(&g_lock); }
  ~Guard() { pthread_mutex_unlock(&g_lock); }
};
CALL void throws(int i) {
  const Guard guard;
  if (i % 2 == 0) throw std::runtime_error("in a hold");
}
CALL void catches() {
  int caught = 0;
  for (int i = 0; i < 10; ++i) try {
      throws(i);
    } catch (const std::runtime_error&) {
      ++caught;
    }
  printf("caught: %d\n", caught);
}

CALL void cleans_up(void*) { pthread_mutex_unlock(&g_lock); }
CALL void wait_for_ever() {
  pthread_mutex_lock(&g_lock);
  pthread_cleanup_push(cleans_up, nullptr);
  for (;;) pthread_cond_wait(&g_never, &g_lock);
  pthread_cleanup_pop(1);
}
CALL void take_afterwards() {
  pthread_mutex_lock(&g_lock);
  pthread_mutex_unlock(&g_lock);
}
CALL void cancelled() {
  static std::atomic<pid_t> waiter{0};
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        waiter = gettid();
        wait_for_ever();
        return nullptr;
      },
      nullptr);
  while (waiter == 0) usleep(50);
  await_sleep(waiter);
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  take_afterwards();
  printf("cancelled: %d\n", result == PTHREAD_CANCELED);
}

int main(int argc, char** argv) {
  pthread_spin_init(&g_spin, 0);
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "convoy") == 0) let_wait(5);
  if (strcmp(what, "pairs") == 0)
    for (int i = 0; i < 3; ++i) let_wait(2);
  if (strcmp(what, "deadlock") == 0) deadlock();
  if (strcmp(what, "philosophers") == 0) philosophers();
  if (strcmp(what, "readers") == 0) readers();
  if (strcmp(what, "fork") == 0) fork_in_hold();
  if (strcmp(what, "throws") == 0) catches();
  if (strcmp(what, "cancelled") == 0) cancelled();
}
