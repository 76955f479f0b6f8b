// Prints what a program can see of itself and of its process; one part, by name, for each thing that a guest could
// change. The same must come out with Karst and without.
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "filters.h"

extern char** environ;

namespace {

volatile long g_leaves;
const char* g_program;

__attribute__((noinline)) void leaf() { g_leaves = g_leaves + 1; }
__attribute__((noinline)) void work(long n) {
  for (long i = 0; i < n; ++i) leaf();
}

/// More events than the arena's first step of memory holds.
constexpr long kManyCalls = 400000;

void print_signals(const char* who) {
  FILE* status = fopen("/proc/thread-self/status", "r");
  char line[256];
  while (status != nullptr && fgets(line, sizeof line, status) != nullptr)
    if ((strncmp(line, "Sig", 3) == 0 && line[3] != 'Q') || strncmp(line, "ShdPnd", 6) == 0) printf("%s %s", who, line);
  if (status != nullptr) fclose(status);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0) continue;
    if (action.sa_handler != SIG_DFL)
      printf("%s %d %s %x\n", who, number, action.sa_handler == SIG_IGN ? "ignored" : "handled", action.sa_flags);
  }
  stack_t other{};
  sigaltstack(nullptr, &other);
  printf("%s other stack %zu %d\n", who, other.ss_size, other.ss_flags);
  fflush(stdout);
}

void on_signal(int) { leaf(); }

void in_child(void (*action)()) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    action();
    fflush(stdout);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %x\n", status);
}

void signals() {
  print_signals("first");
  signal(SIGUSR1, on_signal);
  signal(SIGUSR2, SIG_IGN);
  signal(SIGTRAP, on_signal);
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR1);
  sigaddset(&some, SIGTRAP);
  sigaddset(&some, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &some, nullptr);
  raise(SIGUSR1);
  work(kManyCalls);
  print_signals("main");
  std::thread([] { print_signals("thread"); }).join();
  in_child([] {
    work(10);
    print_signals("child");
  });
  fflush(stdout);
  execl(g_program, g_program, "signals-after-exec", nullptr);
}

/// errno is what it was before a call that is traced, whatever its hook had to do.
void check_errno(const char* where, void (*action)()) {
  errno = 77;
  action();
  if (errno != 77) printf("%s: errno %d\n", where, errno);
}

void errors() {
  check_errno("first calls", [] { work(1); });
  check_errno("new blocks", [] { work(10000); });
  check_errno("new memory", [] { work(kManyCalls); });
  std::thread([] { check_errno("a thread's first call", leaf); }).join();
  check_errno("a forked child", [] {
    if (fork() == 0) {
      errno = 77;
      leaf();
      _exit(errno == 77 ? 0 : 1);
    }
    int status = 0;
    const int before = errno;
    wait(&status);
    if (status != 0) printf("errno changed in the child\n");
    errno = before;
  });
  // What stands before libc's functions answers as they do.
  const auto answer = [](const char* what, long result) { printf("%s: %ld, %s\n", what, result, strerror(errno)); };
  errno = 0;
  answer("execv", execl("/no/such/program", "x", nullptr));
  answer("sigaction", sigaction(99, nullptr, nullptr));
  answer("fchdir", fchdir(-1));
  answer("setuid", setuid(getuid()));
  answer("unshare", unshare(0x7));
  answer("setns", setns(-1, 0));
  leaf();
}

/// Numbers of the descriptors that are open, and may be seen by what is exec'd, if `inherited`.
void print_descriptors(const char* who, bool inherited) {
  printf("%s:", who);
  for (int fd = 0; fd < 1024; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0) continue;
    if (inherited ? (flags & FD_CLOEXEC) == 0 : fd < 200) printf(" %d", fd);
  }
  printf("\n");
}

void descriptors() {
  work(1000);
  print_descriptors("low", false);
  print_descriptors("inherited", true);
  printf("lowest free %d\n", dup(1));
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  work(kManyCalls);
  std::thread([] { work(kManyCalls); }).join();
  printf("lowest free %d\n", dup(1));
  in_child([] {
    work(kManyCalls);
    print_descriptors("child's low", false);
    close(3);
    printf("child's lowest free %d\n", dup(1));
  });
  printf("close_range %d\n", close_range(3, ~0U, 0));
  work(kManyCalls);
  // Numbers that were ours are the program's now, and stay as it left them.
  const int own = open("/dev/null", O_RDWR);
  for (int fd = 100; fd < 1000; ++fd) dup2(own, fd);
  work(kManyCalls);
  in_child([] { work(kManyCalls); });
  std::thread([] { work(kManyCalls); }).join();
  int lost = 0;
  char byte = 0;
  for (int fd = 100; fd < 1000; ++fd) lost += write(fd, &byte, 1) != 1;
  printf("lost %d\n", lost);
}

/// With all three streams closed the first files that are opened become them.
void closed_streams() {
  work(1000);
  const int first = open("/dev/null", O_RDWR);
  const int second = open(getenv("MANNERS_FILE"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int third = open("/dev/null", O_RDWR);
  work(kManyCalls);
  dprintf(second, "%d %d %d\n", first, second, third);
}

/// How many descriptors the program itself can still have.
void few_descriptors() {
  work(10);
  int count = 0, in_order = 0;
  for (int fd = dup(1); fd >= 0; fd = dup(1)) in_order += fd == 3 + count++;
  work(kManyCalls);
  printf("in order %d, enough %d\n", in_order >= 40, count >= 50);
}

void stdio() {
  char line[64];
  static char buffer[7];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  while (fgets(line, sizeof line, stdin) != nullptr) {
    leaf();
    printf("out %s", line);
    fprintf(stderr, "err %s", line);
    if (line[0] == '3') {
      if (fork() == 0) exit(0);  // what is in the buffer is written twice
      wait(nullptr);
    }
  }
  printf("at %ld", ftell(stdin));
}

void forks_in_threads() {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&good] {
      for (int i = 0; i < 10; ++i) {
        const pid_t child = fork();
        if (child == 0) {
          std::string text(1000, 'x');
          std::thread([] { work(100); }).join();
          exit(text.size() == 1000 ? 5 : 6);
        }
        work(100);
        int status = 0;
        good += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5;
      }
    });
  for (auto& each : threads) each.join();
  printf("%d children\n", good.load());
}

/// Rights are given up in all threads, whoever made them.
void drop_user() {
  std::atomic<bool> go{false};
  std::thread other([&go] {
    while (!go) leaf();
    work(kManyCalls);
  });
  const int done = setgid(65534) | setuid(65534);
  int with_rights = 0;
  const std::string threads = "ls /proc/" + std::to_string(getpid()) +
                              "/task | while read t; do grep -L 'Uid:.65534' /proc/" + std::to_string(getpid()) +
                              "/task/$t/status; done | wc -l";
  fflush(stdout);
  FILE* answer = popen(threads.c_str(), "r");
  if (answer == nullptr || fscanf(answer, "%d", &with_rights) != 1) with_rights = -1;
  if (answer != nullptr) pclose(answer);
  go = true;
  other.join();
  printf("dropped %d, with rights %d, back %d\n", done, with_rights, setuid(0));
  in_child([] { work(1000); });
}

void changed_root() {
  work(10);
  const int changed = chroot(getenv("MANNERS_ROOT")) | chdir("/");
  work(kManyCalls);
  std::thread([] { work(kManyCalls); }).join();
  in_child([] { work(1000); });
  printf("changed %d, proc %d\n", changed, access("/proc", F_OK));
}

void* thread_on_small_stack(void*) {
  leaf();
  work(kManyCalls);
  return nullptr;
}

/// First events, new blocks and new memory on the smallest stack that a thread may have; on an alternate one, too.
void small_stacks() {
  pthread_attr_t small;
  pthread_attr_init(&small);
  int refused = pthread_attr_setstacksize(&small, static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)));
  for (int i = 0; i < 4; ++i) {
    pthread_t thread;
    refused |= pthread_create(&thread, &small, thread_on_small_stack, nullptr);
    pthread_join(thread, nullptr);
  }
  printf("refused %d, leaves %ld\n", refused, g_leaves);
}

volatile int g_depth;
void on_deep_signal(int) {
  leaf();
  if (g_depth != 0) work(kManyCalls);
}

uintptr_t g_handler_begins;
void on_first_signal(int) {
  char here = 0;
  g_handler_begins = reinterpret_cast<uintptr_t>(&here);
}

/// What the kernel puts on an alternate stack before its handler runs: it depends on the processor's registers.
size_t frame_of_handler() {
  const size_t size = 65536;
  char* area = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  stack_t stack{};
  stack.ss_sp = area;
  stack.ss_size = size;
  stack_t before{};
  sigaltstack(&stack, &before);
  struct sigaction action {};
  action.sa_handler = on_first_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  sigaltstack(&before, nullptr);
  munmap(area, size);
  return reinterpret_cast<uintptr_t>(area) + size - g_handler_begins;
}

/// A handler on an alternate stack that has `room` bytes for it, with a guard page below.
void alternate_stack(const char* room) {
  const size_t page = 4096;
  const size_t size =
      std::max(frame_of_handler() + static_cast<size_t>(atol(room)), static_cast<size_t>(sysconf(_SC_MINSIGSTKSZ)));
  const size_t mapped = (size + page - 1) / page * page + page;
  auto* area = static_cast<char*>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(area, page, PROT_NONE);
  std::thread([=] {
    stack_t stack{};
    stack.ss_sp = area + page;
    stack.ss_size = size;
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_handler = on_deep_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    raise(SIGUSR1);  // the thread's first event is in the handler
    g_depth = 1;
    raise(SIGUSR1);
  }).join();
  printf("leaves %ld\n", g_leaves);
}

volatile long g_traps;
void on_trap(int, siginfo_t* what, void*) {
  leaf();
  g_traps = g_traps + (what->si_code > 0);
}
void own_traps() {
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  for (int i = 0; i < 1000; ++i) {
    work(10);
    asm volatile("int3");
  }
  printf("traps %ld\n", g_traps);
}

}  // namespace

__attribute__((noinline)) int innermost(void** frames) {
  const int count = backtrace(frames, 64);
  leaf();
  return count;
}
__attribute__((noinline)) int middle(void** frames) { return innermost(frames) + (leaf(), 0); }

namespace {

void trace_back() {
  void* frames[64];
  const int count = middle(frames);
  char** names = backtrace_symbols(frames, count);
  for (int i = 0; i < count; ++i) {
    const char* name = strchr(names[i], '(');
    printf("%s\n", name == nullptr ? "?" : std::string(name, strcspn(name, "+)")).c_str());
  }
}

void lock_all() {
  work(10);
  printf("locked %d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
  work(kManyCalls);
  std::thread([] { work(kManyCalls); }).join();
  in_child([] { work(kManyCalls); });
}

/// Takes memory until there is none, and lives on.
void eat() {
  size_t taken = 0;
  std::vector<char*> kept;
  for (; taken < 2048; ++taken) {
    auto* piece = static_cast<char*>(malloc(1 << 20));
    if (piece == nullptr) break;
    memset(piece, 1, 1 << 20);
    kept.push_back(piece);
    work(1000);
  }
  work(kManyCalls);
  for (char* each : kept) free(each);
  std::thread([] { work(kManyCalls); }).join();
  printf("refused %d\n", taken < 2048);
}

/// Holds so much memory, and makes calls.
void hold(const char* mebibytes) {
  const size_t size = static_cast<size_t>(atol(mebibytes)) << 20;
  auto* held = static_cast<char*>(malloc(size));
  memset(held, 1, size);
  work(20 * kManyCalls);
  printf("held %d\n", held[size / 2]);
  free(held);
}

/// The program forbids itself most system calls; who makes another is killed.
void sandbox(bool bare) {
  work(1000);
  const int made = allow_only(kSandbox, sizeof kSandbox / sizeof kSandbox[0], SECCOMP_RET_KILL_PROCESS, bare);
  work(kManyCalls);
  std::thread([] { work(kManyCalls); }).join();
  printf("sandbox %d\n", made);
}

void plain() {
  work(kManyCalls);
  std::thread([] { work(kManyCalls); }).join();
  in_child([] { work(1000); });
  printf("leaves %ld\n", g_leaves);
}

bool is_karsts(const char* variable) {
  for (const char* name : {"KARST", "LD_PRELOAD="})
    if (strncmp(variable, name, strlen(name)) == 0) return true;
  for (const char* name : {"INTEL_LIBITTNOTIFY64=", "NVTX_INJECTION64_PATH="})
    if (strncmp(variable, name, strlen(name)) == 0) return strstr(variable, "/libkarst.so") != nullptr;
  return false;
}

void environment() {
  work(1);
  for (char** each = environ; *each != nullptr; ++each)
    if (!is_karsts(*each)) printf("%s\n", *each);
}

}  // namespace

int main(int argc, char** argv) {
  g_program = argv[0];
  const std::string part = argc > 1 ? argv[1] : "";
  if (part == "exit-at-once") _exit(42);
  if (part == "signals") signals();
  if (part == "signals-after-exec") print_signals("exec");
  if (part == "errors") errors();
  if (part == "descriptors") descriptors();
  if (part == "closed-streams") closed_streams();
  if (part == "few-descriptors") few_descriptors();
  if (part == "stdio") stdio();
  if (part == "forks-in-threads") forks_in_threads();
  if (part == "drop-user") drop_user();
  if (part == "changed-root") changed_root();
  if (part == "small-stacks") small_stacks();
  if (part == "alternate-stack") alternate_stack(argv[2]);
  if (part == "own-traps") own_traps();
  if (part == "backtrace") trace_back();
  if (part == "lock-all") lock_all();
  if (part == "eat") eat();
  if (part == "sandbox") sandbox(false);
  if (part == "sandbox-bare") sandbox(true);
  if (part == "hold") hold(argv[2]);
  if (part == "plain") plain();
  if (part == "environment") environment();
  return 9;
}
