// Threads that pthread never heard of: made by clone() with a thread-local area of their own, or with their parent's.
// Their functions use no libc, as is right for such threads.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

constexpr int kStack = 64 << 10;
constexpr int kCalls = 2000;  // several blocks of events

int g_total[64];

void leaf(int* sum) { *sum += 1; }
void step(int* sum) {
  leaf(sum);
  leaf(sum);
}
int cloned(void* p) {
  for (int i = 0; i < kCalls; ++i) step(static_cast<int*>(p));
  return 0;
}
void in_parent(int* sum) {
  for (int i = 0; i < kCalls; ++i) step(sum);
}

struct Clone {
  int tid = 0;
  volatile int alive = 0;
};

// An area as the dynamic linker makes it for threads, with the head that libc's own threads have.
void* thread_local_area() {
  auto allocate = reinterpret_cast<void* (*)(void*)>(dlsym(RTLD_DEFAULT, "_dl_allocate_tls"));
  if (allocate == nullptr) return nullptr;
  char* area = static_cast<char*>(allocate(nullptr));
  if (area == nullptr) return nullptr;
  *reinterpret_cast<void**>(area) = area;
  *reinterpret_cast<void**>(area + 16) = area;
  return area;
}

int main(int, char** argv) {
  const bool own = strcmp(argv[1], "own") == 0;
  const bool process = strcmp(argv[1], "process") == 0;  // shares memory and thread-local area, but is no thread
  const int count = atoi(argv[2]);
  std::vector<Clone> clones(count);
  int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  flags |= process ? SIGCHLD : CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  if (own) flags |= CLONE_SETTLS;
  for (int i = 0; i < count; ++i) {
    char* stack = static_cast<char*>(mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    void* area = own ? thread_local_area() : nullptr;
    if (own && area == nullptr) {
      puts("no area");
      return 3;
    }
    clones[i].alive = 1;
    if (clone(cloned, stack + kStack, flags, &g_total[i], &clones[i].tid, area, &clones[i].alive) < 0) {
      perror("clone");
      return 1;
    }
  }
  in_parent(&g_total[count]);
  for (Clone& c : clones) {
    while (c.alive != 0) syscall(SYS_futex, &c.alive, FUTEX_WAIT, c.alive, nullptr, nullptr, 0);
    if (process) waitpid(c.tid, nullptr, 0);
  }
  for (int i = 0; i <= count; ++i)
    printf("%d %d\n", i < count ? clones[i].tid : static_cast<int>(getpid()), g_total[i]);
}
