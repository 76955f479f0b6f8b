// An unprivileged target of root's karst attach. Threads in vfork() are slow to stop; as soon as one of them is traced,
// the last thread ends, so that its number is free while karst may still have it on a list. All addresses that another
// program may have its code and stack at are mapped here, so that its registers make sense in this memory.
//   attacker THREADS: "NUMBER" of the last thread, then "gone" when it has ended
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct Shared { volatile int go_away, last, first, count; } * s;

static void waits_in_vfork(void) {
  if (vfork() == 0) {
    const struct timespec time = {60, 0};
    for (;;) syscall(SYS_nanosleep, &time, 0);
  }
}
static void* slow(void* nothing) {
  if (s->first == 0) s->first = (int)syscall(SYS_gettid);
  __atomic_add_fetch(&s->count, 1, __ATOMIC_SEQ_CST);
  waits_in_vfork();
  return nothing;
}
static void* last(void* nothing) {
  s->last = (int)syscall(SYS_gettid);
  while (!s->go_away) {
  }
  syscall(SYS_exit, 0);
  return nothing;
}

static int is_traced(int process, int thread) {
  char path[64];
  char text[4096] = "";
  snprintf(path, sizeof path, "/proc/%d/task/%d/status", process, thread);
  const int file = open(path, O_RDONLY);
  if (file < 0) return 0;
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  const char* const at = size > 0 ? strstr(text, "TracerPid:\t") : 0;
  return at != 0 && atoi(at + 11) != 0;
}

static void map_everything(void) {
  const int self = open("/proc/self/exe", O_RDONLY);
  for (unsigned long a = 0x7f0000000000; a < 0x7ffffff00000; a += 1UL << 28) {
    if (a >= 0x7ff000000000)
      mmap((void*)a, 1UL << 28, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    else
      mmap((void*)a, 1UL << 28, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, self, 0);
  }
  for (unsigned long a = 0x550000000000; a < 0x570000000000; a += 1UL << 30)
    mmap((void*)a, 1UL << 30, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, self, 0);
}

int main(int count, char** arguments) {
  const int threads = count > 1 ? atoi(arguments[1]) : 4;
  s = mmap(0, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t target = fork();
  if (target == 0) {
    map_everything();
    pthread_t thread;
    for (int i = 0; i < threads; ++i) {
      pthread_create(&thread, 0, slow, 0);
      while (s->count <= i) usleep(1000);
    }
    pthread_create(&thread, 0, last, 0);
    waits_in_vfork();
  }
  while (!s->last) usleep(1000);
  printf("%d %d\n", target, s->last);
  fflush(stdout);
  while (!is_traced(target, target) && !is_traced(target, s->first) && !is_traced(target, s->last)) usleep(100);
  s->go_away = 1;
  puts("gone");
  fflush(stdout);
  pause();
}
