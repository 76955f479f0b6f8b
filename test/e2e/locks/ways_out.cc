// Ways out of a wait that are no return: cancellation, pthread_exit() in a handler, a jump out of a handler. Also
// fork() while others wait, and a thread that waits first while dlopen() waits for it. What happens is printed, and is
// the same traced and untraced. Which ways a function has is libc's affair; the program only looks.
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include <atomic>

#include "asleep.h"

namespace {

enum Way { kCancelPending, kCancelled, kExitsInHandler, kJumps };
constexpr const char* kWays[] = {"cancelled before", "cancelled", "exits in a handler", "jumps"};

pthread_mutex_t g_mutex;
pthread_mutex_t g_with_condition;
pthread_cond_t g_condition;
pthread_rwlock_t g_rwlock;
pthread_barrier_t g_barrier;
sem_t g_semaphore;
timespec g_late;

struct Function {
  const char* name;
  void (*call)();
};
// Macros, as these are C functions whose frames the test is about.
#define WAIT(text, call) \
  {                      \
    text, [] { call; }   \
  }
const Function kFunctions[] = {
    WAIT("sem_wait", sem_wait(&g_semaphore)),
    WAIT("sem_timedwait", sem_timedwait(&g_semaphore, &g_late)),
    WAIT("sem_clockwait", sem_clockwait(&g_semaphore, CLOCK_REALTIME, &g_late)),
    WAIT("pthread_cond_wait", pthread_cond_wait(&g_condition, &g_with_condition)),
    WAIT("pthread_cond_timedwait", pthread_cond_timedwait(&g_condition, &g_with_condition, &g_late)),
    WAIT("pthread_cond_clockwait", pthread_cond_clockwait(&g_condition, &g_with_condition, CLOCK_REALTIME, &g_late)),
    WAIT("cnd_wait", cnd_wait(reinterpret_cast<cnd_t*>(&g_condition), reinterpret_cast<mtx_t*>(&g_with_condition))),
    WAIT("pthread_mutex_lock", pthread_mutex_lock(&g_mutex)),
    WAIT("pthread_mutex_timedlock", pthread_mutex_timedlock(&g_mutex, &g_late)),
    WAIT("pthread_rwlock_rdlock", pthread_rwlock_rdlock(&g_rwlock)),
    WAIT("pthread_rwlock_wrlock", pthread_rwlock_wrlock(&g_rwlock)),
    WAIT("pthread_barrier_wait", pthread_barrier_wait(&g_barrier)),
};

std::atomic<pid_t> g_waiter;
thread_local sigjmp_buf t_place;
Way g_way;
const Function* g_function;

__attribute__((noinline)) void cleans_up(void* text) { printf("  cleans up %s\n", static_cast<const char*>(text)); }
__attribute__((noinline)) void unlocks(void*) {
  const bool held = pthread_mutex_trylock(&g_with_condition) == EBUSY;
  if (held && g_function->name[0] != 's') pthread_mutex_unlock(&g_with_condition);
}

void on_signal(int) {
  if (g_way == kExitsInHandler) pthread_exit(const_cast<char*>("exited"));
  siglongjmp(t_place, 1);
}

__attribute__((noinline)) void wait_inside() {
  pthread_cleanup_push(cleans_up, const_cast<char*>("inside"));
  g_function->call();
  pthread_cleanup_pop(0);
}

/// The stack below has other contents afterwards.
__attribute__((noinline)) void writes_over_stack() {
  volatile char bytes[16384];
  for (unsigned i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<char>(0x5a);
}

void* wait_somehow(void*) {
  pthread_cleanup_push(cleans_up, const_cast<char*>("outside"));
  if (g_way == kCancelPending) pthread_cancel(pthread_self());
  pthread_mutex_lock(&g_with_condition);
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

void renew(bool free) {
  clock_gettime(CLOCK_REALTIME, &g_late);
  g_late.tv_sec += 1000;
  pthread_mutex_init(&g_mutex, nullptr);
  pthread_mutex_init(&g_with_condition, nullptr);
  pthread_cond_init(&g_condition, nullptr);
  pthread_rwlock_init(&g_rwlock, nullptr);
  pthread_barrier_init(&g_barrier, nullptr, free ? 1 : 2);
  sem_init(&g_semaphore, 0, free ? 1 : 0);
  if (free) return;
  pthread_mutex_lock(&g_mutex);
  pthread_rwlock_wrlock(&g_rwlock);
}

bool is_cancelled_while_waiting() { return g_function < kFunctions + 7; }

void try_way(const Function& function, Way way, bool free) {
  renew(free);
  g_function = &function;
  g_way = way;
  g_waiter = 0;
  printf("%s, %s, %s\n", function.name, free ? "free" : "taken", kWays[way]);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, wait_somehow, nullptr) != 0) abort();
  if (way != kCancelPending || !is_cancelled_while_waiting()) {
    while (g_waiter == 0) usleep(100);
    await_sleep(g_waiter);
    if (way == kCancelled) pthread_cancel(thread);
    if (way == kExitsInHandler || way == kJumps) pthread_kill(thread, SIGUSR1);
    if (way <= kCancelled && !is_cancelled_while_waiting()) {
      usleep(2'000);
      pthread_mutex_unlock(&g_mutex);
      pthread_rwlock_unlock(&g_rwlock);
      if (function.name[8] == 'b') pthread_barrier_wait(&g_barrier);
    }
  }
  void* gave = nullptr;
  pthread_join(thread, &gave);
  printf("  %s\n", gave == PTHREAD_CANCELED ? "was cancelled" : static_cast<const char*>(gave));
}

void fork_while_others_wait() {
  renew(false);
  g_function = kFunctions;
  g_way = kCancelled;
  g_waiter = 0;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, wait_somehow, nullptr) != 0) abort();
  while (g_waiter == 0) usleep(100);
  await_sleep(g_waiter);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_unlock(&g_mutex);
    pthread_mutex_lock(&g_mutex);
    sem_post(&g_semaphore);
    sem_wait(&g_semaphore);
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  sem_post(&g_semaphore);
  pthread_join(thread, nullptr);
  printf("child: %d\n", WEXITSTATUS(status));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    printf("%s\n", dlopen(argv[1], RTLD_NOW) != nullptr ? "opened" : dlerror());
    return 0;
  }
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, nullptr);
  for (const Function& function : kFunctions) {
    for (const Way way : {kCancelPending, kCancelled, kExitsInHandler, kJumps}) try_way(function, way, false);
  }
  for (const Function* function = kFunctions; function < kFunctions + 3; ++function)
    try_way(*function, kCancelPending, true);
  fork_while_others_wait();
}
