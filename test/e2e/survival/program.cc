// A program that keeps its own account of the calls that it has finished, and ends badly when it has made so many.
//   program KIND FAULT CALLS ACCOUNT
// Each thread, child and handler makes calls of a function of its own, step<0> to step<15>. What it has finished stands
// in the file ACCOUNT, which is mapped: it survives as the page cache does.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define UNTRACED __attribute__((no_instrument_function, noinline))

namespace {

constexpr int kSteps = 16;

/// The file. Whoever reads it does so in words of 8 bytes.
struct Account {
  std::atomic<long> finished[kSteps];
  std::atomic<long> before[kSteps];  ///< what of it was finished before the fault's moment: other threads go on
  std::atomic<long> process;
  std::atomic<long> struck;  ///< the fault's moment came
  std::atomic<long> ended;   ///< main returned
};
Account* g_account;
std::string g_kind, g_fault;
long g_calls;
volatile long g_work;
void* volatile g_taken;  ///< or compilers leave out what nobody looks at

}  // namespace

void strike();

/// Some hundred nanoseconds of other work, so that a run of some milliseconds fits into the arena.
UNTRACED void pass_time() {
  for (int i = 0; i < 100; ++i) g_work = g_work + i;
}

template <int N>
__attribute__((noinline)) void inner() {
  if (g_kind == "exceptions" && g_account->finished[N] % 4 == 0) throw N;
}

template <int N>
__attribute__((noinline)) void step() {
  try {
    inner<N>();
  } catch (int) {
  }
  pass_time();
}

template <int N>
UNTRACED void steps(long count, bool strikes) {
  for (long i = 0; i < count; ++i) {
    step<N>();
    g_account->finished[N].fetch_add(1, std::memory_order_relaxed);
    if (strikes && i == g_calls) strike();
  }
}

constexpr std::array<void (*)(long, bool), kSteps> kStepsOf = [] {
  return []<std::size_t... N>(std::index_sequence<N...>) {
    return std::array<void (*)(long, bool), kSteps>{steps<N>...};
  }
  (std::make_index_sequence<kSteps>());
}();

__attribute__((noinline)) long overflow(long depth) {
  volatile char room[256];
  room[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : overflow(depth + 1) + room[0];
}

UNTRACED void limit(__rlimit_resource_t what, rlim_t soft, rlim_t hard) {
  const rlimit value{soft, hard};
  setrlimit(what, &value);
}

/// The fault that a program does to itself. Returns if others do it to the program, or it is none.
UNTRACED void strike() {
  for (int i = 0; i < kSteps; ++i) g_account->before[i] = g_account->finished[i].load();
  g_account->struck = 1;
  const auto is = [](const char* name) { return g_fault == name; };
  if (is("SIGKILL")) kill(getpid(), SIGKILL);
  if (is("SIGSEGV")) *reinterpret_cast<volatile int*>(g_work - g_work + 8) = 1;
  if (is("SIGABRT")) abort();
  if (is("SIGFPE")) g_work = g_work / (g_work - g_work);
  if (is("SIGILL")) __builtin_trap();
  if (is("SIGBUS")) {
    const int empty = fileno(tmpfile());
    *static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, empty, 0)) = 1;
  }
  if (is("uncaught exception")) throw std::runtime_error("nobody catches this");
  if (is("stack overflow")) overflow(0);
  if (is("_exit")) _exit(7);
  if (is("deadlock")) {
    static pthread_mutex_t s_lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&s_lock);
    pthread_mutex_lock(&s_lock);
  }
  if (is("processor time")) {
    limit(RLIMIT_CPU, 1, 30);  // the greater one would be a SIGKILL
    for (;;) g_work = g_work + 1;
  }
  if (is("address space")) {
    limit(RLIMIT_AS, 64 << 20, 64 << 20);
    for (;;) g_taken = memset(new char[1 << 20], 1, 1 << 20);
  }
  if (is("memory group")) {
    for (;;) g_taken = memset(malloc(1 << 20), 1, 1 << 20);
  }
}

UNTRACED void on_alarm(int) { kStepsOf[15](1, false); }

int main(int, char** argv) {
  g_kind = argv[1];
  g_fault = argv[2];
  g_calls = atol(argv[3]);
  const int file = open(argv[4], O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, 4096) != 0) return 1;
  g_account = static_cast<Account*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  g_account->process = getpid();
  puts("begins");
  fflush(stdout);
  const long most = 2 * g_calls;  // as many as there are if nothing comes in between
  const long few = std::min(g_calls, 5000L);
  std::vector<std::thread> threads;
  if (g_kind == "threads")
    for (int t = 1; t < 6; ++t) threads.emplace_back([t, most] { kStepsOf[static_cast<std::size_t>(t)](most, false); });
  if (g_kind == "forks")
    for (int child = 1; child < 4; ++child)
      if (fork() == 0) {
        kStepsOf[static_cast<std::size_t>(child)](few, false);
        _exit(0);
      }
  if (g_kind == "library") {
    kStepsOf[1](few, false);
    void* opened = dlopen(getenv("SURVIVAL_LIBRARY"), RTLD_NOW);
    if (opened == nullptr) return 1;
    reinterpret_cast<int (*)(int)>(dlsym(opened, "plugin_run"))(3);
  }
  if (g_kind == "signals") {
    struct sigaction action {};
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval often{{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  kStepsOf[0](most, true);
  for (auto& each : threads) each.join();
  while (wait(nullptr) > 0) {
  }
  puts("ends");
  g_account->ended = 1;
  return 3;
}
