// A thread takes a lock in one function and is in another one, which sleeps, while main waits for it: 12 times.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "asleep.h"

#define CALL __attribute__((noinline, noclone))

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static std::atomic<bool> g_held{false};

CALL void inside(pid_t waiter, bool is_long) {
  g_held = true;
  if (is_long) await_lock(waiter);
  usleep(is_long ? 60'000 : 1);
}
CALL void take(pid_t waiter, bool is_long) {
  pthread_mutex_lock(&g_mutex);
  inside(waiter, is_long);
  pthread_mutex_unlock(&g_mutex);
}
CALL void want() {
  pthread_mutex_lock(&g_mutex);
  pthread_mutex_unlock(&g_mutex);
}

int main() {
  const pid_t waiter = gettid();
  for (int i = 0; i < 12; ++i) {
    g_held = false;
    std::thread thread(take, waiter, i == 7);
    while (!g_held) usleep(50);
    if (i != 7) thread.join();
    want();
    if (i == 7) thread.join();
  }
}
