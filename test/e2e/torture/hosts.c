// A program in situations that a guest could make fatal: libkarst that comes and goes with a plugin, code that is data
// as well, a signal handler whose forked child returns into the hook that was interrupted, a thread with a thread-local
// area of the program's own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

// In a segment that is writable and executable; so is work().
__asm__(".pushsection .both, \"awx\", @progbits\n.balign 8\n.globl counter\ncounter: .quad 0\n.popsection");
extern long counter;

__attribute__((noinline)) void work(void) { counter += 1; }

static volatile int forks, crashed;
static volatile sig_atomic_t is_child;

static void every(int microseconds) {
  const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

__attribute__((noinline)) void on_alarm(int number) {
  (void)number;
  work();
}

__attribute__((noinline)) void on_alarm_fork(int number) {
  (void)number;
  if (is_child) return;
  const pid_t child = fork();
  if (child == 0) {
    is_child = 1;
    return;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  crashed += WIFSIGNALED(status);
  // Here, as a slow machine may come from one handler to the next and never back to the loop.
  if (++forks == 500) every(0);
}

static void handle(void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
}

static int with_plugin(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW);
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*triple)(int) = (int (*)(int))dlsym(plugin, "triple");
  work();
  const int result = triple(14);
  dlclose(plugin);
  for (int i = 0; i < 1000; ++i) work();
  printf("%d\n", result);
  return 0;
}

static int with_forks(void) {
  handle(on_alarm_fork);
  every(1000);
  while (forks < 500 || is_child) {
    work();
    if (is_child && ++forks > 5000) _exit(0);
  }
  every(0);
  printf("%d crashed\n", crashed);
  return 0;
}

static volatile int left;

static int foreign_thread(void* unused) {
  (void)unused;
  for (int i = 0; i < 2000; ++i) work();
  __atomic_store_n(&left, 1, __ATOMIC_RELEASE);
  syscall(SYS_exit, 0);
  return 0;
}

// Nothing is mapped in front of the thread's area, where the variables of libraries would be.
static int with_foreign_thread(void) {
  const size_t page = 4096;
  char* memory = mmap(NULL, 20 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* area = memory + page;
  char* stack = memory + 3 * page;
  mprotect(area, page, PROT_READ | PROT_WRITE);
  mprotect(stack, 17 * page, PROT_READ | PROT_WRITE);
  *(void**)area = area;
  *(void**)(area + 16) = area;
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;
  if (clone(foreign_thread, stack + 17 * page, flags, NULL, NULL, area, NULL) < 0) return 3;
  while (__atomic_load_n(&left, __ATOMIC_ACQUIRE) == 0) usleep(1000);
  usleep(10000);
  printf("%ld\n", counter);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "signals") == 0) {
    handle(on_alarm);
    every(20);
    return with_plugin(argv[2]);
  }
  if (argc == 3) return with_plugin(argv[2]);
  if (argc == 2 && strcmp(argv[1], "foreign") == 0) return with_foreign_thread();
  if (argc == 2 && strcmp(argv[1], "stop") == 0) {
    kill(getpid(), SIGTSTP);
    return 3;
  }
  if (argc == 2 && strcmp(argv[1], "fd2") == 0) {
    puts(fcntl(2, F_GETFD) < 0 ? "closed" : "open");
    return 0;
  }
  if (argc == 2) return with_forks();
  work();
  printf("%ld\n", counter);
  return 0;
}
