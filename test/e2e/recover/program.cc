// A program that ends badly, hangs, or waits to be looked at: program HOW [CALLS].
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#define UNTRACED __attribute__((no_instrument_function))

volatile long g_leaves;
volatile char g_byte;
void leaf() { g_leaves = g_leaves + 1; }
void work(int n) {
  for (int i = 0; i < n; ++i) leaf();
}
long overflow(long depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  return overflow(depth + 1) + room[0];
}
void thrower() { throw std::runtime_error("nobody catches this"); }

pthread_mutex_t g_first = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_second = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t g_both;
void take_both(pthread_mutex_t* one, pthread_mutex_t* other) {
  pthread_mutex_lock(one);
  pthread_barrier_wait(&g_both);
  pthread_mutex_lock(other);
}
void* second(void*) {
  pthread_setname_np(pthread_self(), "second");
  take_both(&g_second, &g_first);
  return nullptr;
}
void* waiter(void*) {
  pthread_setname_np(pthread_self(), "waiter");
  leaf();
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}

UNTRACED void on_crash(int number) {
  char said[] = "the program's own handler\n";
  if (write(1, said, sizeof said - 1) < 0) _exit(3);
  signal(number, SIG_DFL);
  raise(number);
}
/// What the program is told of itself must be as if nobody else were there.
UNTRACED void tell_dispositions() {
  struct sigaction action {};
  stack_t stack{};
  const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGUSR1};
  for (int number : numbers) {
    sigaction(number, nullptr, &action);
    printf("%d %d ", action.sa_handler == SIG_DFL, action.sa_flags);
    printf("%d ", signal(number, SIG_IGN) == SIG_DFL);
    printf("%d ", signal(number, SIG_DFL) == SIG_IGN);
    sigaction(number, nullptr, &action);
    printf("%d\n", action.sa_handler == SIG_DFL);
  }
  sigaltstack(nullptr, &stack);
  printf("stack %d %p %zu\n", stack.ss_flags, stack.ss_sp, stack.ss_size);
  static char own[65536];
  stack_t mine{own, 0, sizeof own};
  printf("set %d\n", sigaltstack(&mine, &stack));
  printf("was %d\n", stack.ss_flags);
  stack_t none{nullptr, SS_DISABLE, 0};
  printf("unset %d", sigaltstack(&none, &stack));
  printf(" was mine %d\n", stack.ss_sp == own);
  sigaltstack(nullptr, &stack);
  printf("now %d\n", stack.ss_flags);
}

UNTRACED int strike(const char* how) {
  if (strcmp(how, "segv") == 0) *reinterpret_cast<volatile int*>(g_leaves - g_leaves + 16) = 1;
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "ill") == 0) __builtin_trap();
  if (strcmp(how, "fpe") == 0) return static_cast<int>(g_leaves / (g_leaves - g_leaves));
  if (strcmp(how, "sent") == 0) kill(getpid(), SIGBUS);
  if (strcmp(how, "overflow") == 0) return static_cast<int>(overflow(0));
  if (strcmp(how, "throw") == 0) thrower();
  if (strcmp(how, "handled") == 0) {
    signal(SIGSEGV, on_crash);
    *reinterpret_cast<volatile int*>(g_leaves - g_leaves + 16) = 1;
  }
  if (strcmp(how, "tell") == 0) tell_dispositions();
  if (strcmp(how, "pause") == 0) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
  if (strcmp(how, "deadlock") == 0) {
    pthread_t thread;
    pthread_barrier_init(&g_both, nullptr, 2);
    pthread_create(&thread, nullptr, second, nullptr);
    take_both(&g_first, &g_second);
  }
  if (strcmp(how, "fork") == 0 || strcmp(how, "fork-pause") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      work(10);
      if (strcmp(how, "fork-pause") == 0) {
        puts("ready");
        fflush(stdout);
        for (;;) pause();
      }
      abort();
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    printf("child %d %d\n", child, WTERMSIG(status));
  }
  return 0;
}
int marker(const char* how) { return strike(how) + 1; }
int middle(const char* how) { return marker(how) + 1; }

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  pthread_t thread;
  if (strcmp(argv[1], "threads") == 0) {
    pthread_create(&thread, nullptr, waiter, nullptr);
    usleep(100000);
    argv[1] = const_cast<char*>("segv");
  }
  work(argc > 2 ? atoi(argv[2]) : 1000);
  return middle(argv[1]) == 2 ? 0 : 1;
}
