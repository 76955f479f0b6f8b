// Linked against the condition variables of before glibc 2.3.2, whose pthread_cond_t is one pointer: what stands before
// the new functions must not be reached, as it would write over what follows.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern int old_wait(pthread_cond_t*, pthread_mutex_t*);
extern int old_signal(pthread_cond_t*);
extern int old_timedwait(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
__asm__(".symver old_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver old_signal, pthread_cond_signal@GLIBC_2.2.5");
__asm__(".symver old_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
  void* condition;
  char after[64];
} g_old;
static int g_ready;

static void* get_ready(void* unused) {
  usleep(10000);
  pthread_mutex_lock(&g_mutex);
  g_ready = 1;
  old_signal((pthread_cond_t*)&g_old.condition);
  pthread_mutex_unlock(&g_mutex);
  return unused;
}

int main(void) {
  memset(g_old.after, 0x5a, sizeof g_old.after);
  pthread_t thread;
  if (pthread_create(&thread, NULL, get_ready, NULL) != 0) return 1;
  pthread_mutex_lock(&g_mutex);
  while (!g_ready) old_wait((pthread_cond_t*)&g_old.condition, &g_mutex);
  const struct timespec past = {1, 0};
  const int late = old_timedwait((pthread_cond_t*)&g_old.condition, &g_mutex, &past);
  pthread_mutex_unlock(&g_mutex);
  pthread_join(thread, NULL);
  int same = 0;
  for (unsigned i = 0; i < sizeof g_old.after; ++i) same += g_old.after[i] == 0x5a;
  printf("%d %d\n", late, same);
  return 0;
}
