// Ways out of a wait that are no return: cancellation, pthread_exit() in a handler, a jump out of a handler. Also
// fork() while others wait, and a thread that waits first while dlopen() waits for it. What happens is printed, and is
// the same traced and untraced. Which ways a function has is libc's affair; the program only looks.
#include "ways_out.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

namespace {

pthread_mutex_t g_mutex;
pthread_mutex_t g_with_condition;
pthread_cond_t g_condition;
pthread_rwlock_t g_rwlock;
pthread_barrier_t g_barrier;
sem_t g_semaphore;
timespec g_late;

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

void take_the_mutex() { pthread_mutex_lock(&g_with_condition); }

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
  printf("%s, %s, %s\n", function.name, free ? "free" : "taken", kWays[way]);
  const pthread_t thread = begin_waiter<take_the_mutex>(function, way);
  if (way != kCancelPending || !is_cancelled_while_waiting()) {
    await_waiter();
    send_away(thread);
    if (way <= kCancelled && !is_cancelled_while_waiting()) {
      usleep(2'000);
      pthread_mutex_unlock(&g_mutex);
      pthread_rwlock_unlock(&g_rwlock);
      if (function.name[8] == 'b') pthread_barrier_wait(&g_barrier);
    }
  }
  join_waiter(thread);
}

void fork_while_others_wait() {
  renew(false);
  const pthread_t thread = begin_waiter<take_the_mutex>(*kFunctions, kCancelled);
  await_waiter();
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
  handle_signals();
  for (const Function& function : kFunctions) {
    for (const Way way : {kCancelPending, kCancelled, kExitsInHandler, kJumps}) try_way(function, way, false);
  }
  for (const Function* function = kFunctions; function < kFunctions + 3; ++function)
    try_way(*function, kCancelPending, true);
  fork_while_others_wait();
}
