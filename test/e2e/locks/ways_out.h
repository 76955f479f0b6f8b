// A thread in a call that waits, and the ways out of it that are no return. What happens is printed.
#pragma once
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

#include "asleep.h"

enum Way { kCancelPending, kCancelled, kExitsInHandler, kJumps };
inline constexpr const char* kWays[] = {"cancelled before", "cancelled", "exits in a handler", "jumps"};

struct Function {
  const char* name;
  void (*call)();
};

inline std::atomic<pid_t> g_waiter;  // 0: it has not begun
inline thread_local sigjmp_buf t_place;
inline Way g_way;
inline const Function* g_function;

__attribute__((noinline)) inline void cleans_up(void* text) {
  printf("  cleans up %s\n", static_cast<const char*>(text));
}

inline void on_signal(int) {
  if (g_way == kExitsInHandler) pthread_exit(const_cast<char*>("exited"));
  siglongjmp(t_place, 1);
}

inline void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, nullptr);
}

__attribute__((noinline)) inline void wait_inside() {
  pthread_cleanup_push(cleans_up, const_cast<char*>("inside"));
  g_function->call();
  pthread_cleanup_pop(0);
}

/// The stack below has other contents afterwards.
__attribute__((noinline)) inline void writes_over_stack() {
  volatile char bytes[16384];
  for (unsigned i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<char>(0x5a);
}

/// What the thread does; `prepare` is called in it first.
template <void (*prepare)()>
void* wait_somehow(void*) {
  pthread_cleanup_push(cleans_up, const_cast<char*>("outside"));
  if (g_way == kCancelPending) pthread_cancel(pthread_self());
  prepare();
  g_waiter = gettid();
  if (g_way == kJumps) {
    if (sigsetjmp(t_place, 1) == 0) {
      g_function->call();
      printf("  returned\n");
    } else {
      writes_over_stack();
      printf("  jumped\n");
      pthread_exit(const_cast<char*>("exited after a jump"));
    }
  } else {
    wait_inside();
    printf("  returned\n");
  }
  pthread_cleanup_pop(1);
  return const_cast<char*>("returned");
}

inline void await_waiter() {
  while (g_waiter == 0) usleep(100);
  await_sleep(g_waiter);
}

template <void (*prepare)()>
pthread_t begin_waiter(const Function& function, Way way) {
  g_function = &function;
  g_way = way;
  g_waiter = 0;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, wait_somehow<prepare>, nullptr) != 0) abort();
  return thread;
}

/// Once it waits. One that has cancelled itself is left alone.
inline void send_away(pthread_t thread) {
  if (g_way == kCancelled) pthread_cancel(thread);
  if (g_way == kExitsInHandler || g_way == kJumps) pthread_kill(thread, SIGUSR1);
}

inline void join_waiter(pthread_t thread) {
  void* gave = nullptr;
  pthread_join(thread, &gave);
  printf("  %s\n", gave == PTHREAD_CANCELED ? "was cancelled" : static_cast<const char*>(gave));
}
