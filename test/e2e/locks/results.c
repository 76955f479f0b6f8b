// What every function that --system locks stands before gives: its result and errno, for locks of all kinds, free and
// not, in use and wrongly used. The lines are the same traced and untraced; nothing in them is a time or an address.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const struct timespec g_past = {1, 0}, g_invalid = {1, 1000000000}, g_negative = {1, -1};
static const char* g_case = "";

#define TRY(call)                                          \
  do {                                                     \
    errno = 77;                                            \
    const int given = (call);                              \
    const int left = errno;                                \
    printf("%s: %s: %d %d\n", g_case, #call, given, left); \
  } while (0)

static void on_other_thread(void* (*work)(void*), void* with) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, with) != 0) return;
  pthread_join(thread, NULL);
}

static void* take_and_die(void* lock) {
  TRY(pthread_mutex_lock((pthread_mutex_t*)lock));
  return NULL;
}

static void* find_taken(void* with) {
  pthread_mutex_t* lock = with;
  TRY(pthread_mutex_timedlock(lock, &g_past));
  TRY(pthread_mutex_timedlock(lock, &g_invalid));
  TRY(pthread_mutex_timedlock(lock, &g_negative));
  TRY(pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &g_past));
  TRY(pthread_mutex_clocklock(lock, CLOCK_PROCESS_CPUTIME_ID, &g_past));
  return NULL;
}

static long g_counter;

static void* count(void* lock) {
  for (int i = 0; i < 2000; ++i) {
    const int taken = pthread_mutex_lock((pthread_mutex_t*)lock);
    if (taken == 0) ++g_counter;
    if (taken == 0) pthread_mutex_unlock((pthread_mutex_t*)lock);
  }
  return NULL;
}

/// Threads that want a lock at the same time lose no turn.
static void contend(pthread_mutex_t* lock) {
  pthread_t threads[3];
  g_counter = 0;
  for (int i = 0; i < 3; ++i)
    if (pthread_create(&threads[i], NULL, count, lock) != 0) return;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  printf("%s: counted %ld\n", g_case, g_counter);
}

static void try_mutex(int type, int protocol, int robust, int shared) {
  static char name[64];
  snprintf(name, sizeof name, "mutex %d %d %d %d", type, protocol, robust, shared);
  g_case = name;
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_settype(&how, type);
  TRY(pthread_mutexattr_setprotocol(&how, protocol));
  pthread_mutexattr_setrobust(&how, robust);
  pthread_mutexattr_setpshared(&how, shared);
  pthread_mutex_t lock;
  if (pthread_mutex_init(&lock, &how) != 0) return;  // libc has no robust ones with a ceiling
  TRY(pthread_mutex_lock(&lock));
  if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) {
    TRY(pthread_mutex_lock(&lock));
    TRY(pthread_mutex_timedlock(&lock, &g_past));
  }
  if (type == PTHREAD_MUTEX_RECURSIVE) {
    TRY(pthread_mutex_unlock(&lock));
    TRY(pthread_mutex_unlock(&lock));
  }
  on_other_thread(find_taken, &lock);
  TRY(pthread_mutex_unlock(&lock));
  TRY(pthread_mutex_trylock(&lock));
  TRY(pthread_mutex_unlock(&lock));
  if (protocol != PTHREAD_PRIO_PROTECT) {  // with those libc itself looks at the time
    TRY(pthread_mutex_timedlock(&lock, NULL));
    TRY(pthread_mutex_unlock(&lock));
  }
  TRY(pthread_mutex_timedlock(&lock, &g_invalid));
  TRY(pthread_mutex_unlock(&lock));
  // Those with a ceiling refuse threads of a higher priority, and how often depends on who comes when.
  if (protocol != PTHREAD_PRIO_PROTECT) contend(&lock);
  if (!robust) return;
  on_other_thread(take_and_die, &lock);
  TRY(pthread_mutex_lock(&lock));
  TRY(pthread_mutex_consistent(&lock));
  TRY(pthread_mutex_unlock(&lock));
  on_other_thread(take_and_die, &lock);
  TRY(pthread_mutex_timedlock(&lock, &g_past));
  TRY(pthread_mutex_unlock(&lock));
  TRY(pthread_mutex_lock(&lock));
  TRY(pthread_mutex_clocklock(&lock, CLOCK_REALTIME, &g_past));
}

/// A child takes a robust mutex in shared memory and dies with it, while its parent waits.
static void try_other_process(void) {
  g_case = "process";
  struct {
    pthread_mutex_t lock;
    sem_t taken;
  }* shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->lock, &how);
  sem_init(&shared->taken, 1, 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    pthread_mutex_lock(&shared->lock);
    sem_post(&shared->taken);
    usleep(20000);
    _exit(0);
  }
  TRY(sem_wait(&shared->taken));
  TRY(pthread_mutex_lock(&shared->lock));
  TRY(pthread_mutex_consistent(&shared->lock));
  TRY(pthread_mutex_unlock(&shared->lock));
  TRY(waitpid(child, NULL, 0) == child);
}

static void* find_written(void* lock) {
  TRY(pthread_rwlock_timedrdlock((pthread_rwlock_t*)lock, &g_past));
  TRY(pthread_rwlock_clockrdlock((pthread_rwlock_t*)lock, CLOCK_MONOTONIC, &g_past));
  TRY(pthread_rwlock_timedwrlock((pthread_rwlock_t*)lock, &g_past));
  TRY(pthread_rwlock_clockwrlock((pthread_rwlock_t*)lock, CLOCK_MONOTONIC, &g_past));
  return NULL;
}

static void try_rwlock(int kind) {
  g_case = kind == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP ? "rwlock of writers" : "rwlock";
  pthread_rwlockattr_t how;
  pthread_rwlockattr_init(&how);
  pthread_rwlockattr_setkind_np(&how, kind);
  pthread_rwlock_t lock;
  pthread_rwlock_init(&lock, &how);
  TRY(pthread_rwlock_wrlock(&lock));
  TRY(pthread_rwlock_wrlock(&lock));
  TRY(pthread_rwlock_rdlock(&lock));
  on_other_thread(find_written, &lock);
  TRY(pthread_rwlock_unlock(&lock));
  TRY(pthread_rwlock_rdlock(&lock));
  TRY(pthread_rwlock_timedrdlock(&lock, NULL));
  TRY(pthread_rwlock_timedrdlock(&lock, &g_invalid));
  TRY(pthread_rwlock_clockrdlock(&lock, 12345, &g_past));
  TRY(pthread_rwlock_timedwrlock(&lock, &g_past));
  TRY(pthread_rwlock_clockwrlock(&lock, 12345, &g_past));
  TRY(pthread_rwlock_unlock(&lock));
  TRY(pthread_rwlock_unlock(&lock));
  TRY(pthread_rwlock_timedwrlock(&lock, NULL));
  TRY(pthread_rwlock_unlock(&lock));
}

static void on_signal(int number) { (void)number; }

static void try_semaphore(void) {
  g_case = "semaphore";
  sem_t count;
  sem_init(&count, 0, 1);
  TRY(sem_wait(&count));
  TRY(sem_timedwait(&count, &g_past));
  TRY(sem_timedwait(&count, &g_invalid));
  TRY(sem_clockwait(&count, CLOCK_MONOTONIC, &g_past));
  TRY(sem_clockwait(&count, 12345, &g_past));
  TRY(sem_clockwait(&count, CLOCK_MONOTONIC, &g_negative));
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGALRM, &action, NULL);
  ualarm(20000, 0);
  TRY(sem_wait(&count));
  sem_post(&count);
  TRY(sem_clockwait(&count, CLOCK_REALTIME, &g_past));
}

static void try_condition(void) {
  g_case = "condition";
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_t lock;
  pthread_mutex_init(&lock, &how);
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  TRY(pthread_cond_wait(&condition, &lock));
  TRY(pthread_cond_timedwait(&condition, &lock, &g_past));
  pthread_mutex_lock(&lock);
  TRY(pthread_cond_timedwait(&condition, &lock, &g_past));
  TRY(pthread_cond_timedwait(&condition, &lock, &g_invalid));
  TRY(pthread_cond_clockwait(&condition, &lock, CLOCK_MONOTONIC, &g_past));
  TRY(pthread_cond_clockwait(&condition, &lock, 12345, &g_past));
  TRY(pthread_mutex_unlock(&lock));
}

static int find_taken_by_c(void* lock) {
  TRY(mtx_timedlock((mtx_t*)lock, &g_past));
  TRY(mtx_timedlock((mtx_t*)lock, &g_invalid));
  return 0;
}

static void try_c11(int type) {
  g_case = type == mtx_timed ? "mtx" : "mtx that is recursive";
  mtx_t lock;
  cnd_t condition;
  thrd_t thread;
  mtx_init(&lock, type);
  cnd_init(&condition);
  TRY(mtx_lock(&lock));
  if (type != mtx_timed) TRY(mtx_lock(&lock));
  TRY(mtx_unlock(&lock));
  TRY(mtx_timedlock(&lock, &g_invalid));
  TRY(cnd_timedwait(&condition, &lock, &g_past));
  thrd_create(&thread, find_taken_by_c, &lock);
  thrd_join(thread, NULL);
}

int main(void) {
  static const int protocols[] = {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT};
  for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ADAPTIVE_NP; ++type)
    for (unsigned protocol = 0; protocol < 3; ++protocol)
      for (int robust = 0; robust < 2; ++robust)
        for (int shared = 0; shared < 2; ++shared) try_mutex(type, protocols[protocol], robust, shared);
  try_other_process();
  try_rwlock(PTHREAD_RWLOCK_DEFAULT_NP);
  try_rwlock(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  try_semaphore();
  try_condition();
  try_c11(mtx_timed);
  try_c11(mtx_timed | mtx_recursive);
  return 0;
}
