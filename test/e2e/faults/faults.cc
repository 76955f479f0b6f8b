// Ends badly in the way asked for. `marker` is the last call that the trace must show.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <thread>

volatile long g_leaves;
void leaf() { g_leaves = g_leaves + 1; }
void work(int n) {
  for (int i = 0; i < n; ++i) leaf();
}
void strike(const char* how);
void marker(const char* how) { strike(how); }
__attribute__((no_instrument_function)) void strike(const char* how) {
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "segv") == 0) *reinterpret_cast<volatile int*>(g_leaves - g_leaves) = 1;
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "_exit") == 0) _exit(7);
  if (strcmp(how, "exit") == 0) exit(8);
  if (strcmp(how, "pause") == 0) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
}
void middle(const char* how) { marker(how); }

long overflow(long depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  return overflow(depth + 1) + room[0];
}
void on_overflow(int) {
  leaf();
  _exit(9);
}

pthread_mutex_t g_first = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_second = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t g_both;
void take_both(pthread_mutex_t* one, pthread_mutex_t* other) {
  pthread_mutex_lock(one);
  pthread_barrier_wait(&g_both);
  if (one == &g_first) {
    puts("ready");
    fflush(stdout);
  }
  pthread_mutex_lock(other);
}
void deadlock() {
  pthread_barrier_init(&g_both, nullptr, 2);
  std::thread(take_both, &g_second, &g_first).detach();
  take_both(&g_first, &g_second);
}

// Only write and exit are allowed from here on. (A filter: strict mode forbids reading the TSC as well.)
void strict() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof rules / sizeof rules[0], rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) exit(1);
  work(300000);
  static_cast<void>(!write(1, "strict\n", 7));
  syscall(SYS_exit, 0);
}

// Strict mode turns the TSC off: a hook that read it would end the program.
void no_clock() {
  work(1000);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0) exit(1);
  work(1000);
  static_cast<void>(!write(1, "no clock\n", 9));
  syscall(SYS_exit, 0);
}

void eat() {
  for (;;) {
    void* p = malloc(1 << 20);
    if (p == nullptr) break;
    memset(p, 1, 1 << 20);
    leaf();
  }
}

// What raises a signal, or fails where that is ignored.
void fail_to_write(bool to_pipe) {
  int ends[2] = {-1, fileno(tmpfile())};
  if (to_pipe) {
    if (pipe(ends) != 0) exit(1);
    close(ends[0]);
  }
  static char bytes[1 << 17];
  while (write(ends[1], bytes, sizeof bytes) > 0) {
  }
  puts("it failed only");
}

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "none";
  work(1000);
  if (how == "overflow" || how == "overflow-handled") {
    if (how == "overflow-handled") {
      static char stack[64 << 10];
      stack_t area{};
      area.ss_sp = stack;
      area.ss_size = sizeof stack;
      sigaltstack(&area, nullptr);
      struct sigaction action {};
      action.sa_handler = on_overflow;
      action.sa_flags = SA_ONSTACK;
      sigaction(SIGSEGV, &action, nullptr);
    }
    return static_cast<int>(overflow(0));
  }
  if (how == "deadlock") deadlock();
  if (how == "strict") strict();
  if (how == "no-clock") no_clock();
  if (how == "eat") eat();
  if (how == "file-size" || how == "pipe") fail_to_write(how == "pipe");
  if (how == "leaves") {
    puts("ready");
    fflush(stdout);
    for (;; usleep(1000)) leaf();
  }
  if (how == "close-all") {
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    work(100000);
  }
  if (argc > 1 && how != "none") middle(argv[1]);
  printf("%ld\n", g_leaves);
}
