// Requests that are timed by themselves: some slow, nested, recursive, ended by exceptions and jumps, on many threads,
// while so much else is called that a small memory wraps again and again. Of each request the log has two times, in
// ticks: one taken within it, which is no longer than the call, and one around it, which is no shorter; and its thread.
//
// usage: requests serve | fork | kill | wait | plugin FILE
// `wait` serves at each empty line of its input, and uses the plugin that another line names.
#include <dlfcn.h>
#include <karst/karst.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <chrono>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#define NOTRACE __attribute__((no_instrument_function)) KARST_NOTRACE

namespace {
struct Entry {
  std::uint64_t inner;
  std::uint64_t outer;
  long tid;
};
std::mutex g_mutex;
std::vector<Entry> g_log;
volatile int g_sink;
}  // namespace

enum How { kReturns, kThrows, kJumps, kThrowsThrough };

__attribute__((noinline)) void leaf(int i) { g_sink = i; }

// Written as the frame goes.
struct NestedTime {
  std::uint64_t& from;
  std::uint64_t& to;
  __attribute__((no_instrument_function)) KARST_NOTRACE ~NestedTime() { to = from; }
};

void timed_request(int us, How how, int depth);

// The times are written where they survive whatever way out is taken.
__attribute__((noinline)) void request(int us, How how, int depth, std::jmp_buf& out, std::uint64_t (&times)[2]) {
  std::uint64_t& inner = times[0];
  const std::uint64_t begin = __rdtsc();
  for (int i = 0; i < 300; ++i) leaf(i);
  if (us != 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
  inner = __rdtsc() - begin;
  if (how == kThrowsThrough) {
    // One exception ends both.
    std::uint64_t nested[2];
    const NestedTime keep{nested[0], times[1]};
    request(0, kThrows, 0, out, nested);
  }
  for (int i = 0; i < depth; ++i) timed_request(us / 2, static_cast<How>(i % 3), depth - 1);
  inner = __rdtsc() - begin;
  if (how == kThrows) throw std::runtime_error("request");
  if (how == kJumps) std::longjmp(out, 1);
}

// Its exit is a tail call's.
__attribute__((noinline)) void relay(int us) {
  if (us != 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
  leaf(us);
}

NOTRACE void timed_request(int us, How how, int depth) {
  std::jmp_buf out;
  volatile std::uint64_t begin = __rdtsc();
  std::uint64_t inner[2] = {};
  try {
    if (setjmp(out) == 0) request(us, how, depth, out, inner);
  } catch (const std::runtime_error&) {
  }
  const std::uint64_t end = __rdtsc();
  const std::lock_guard<std::mutex> lock(g_mutex);
  for (const std::uint64_t ticks : inner)
    if (ticks != 0) g_log.push_back({ticks, end - begin, syscall(SYS_gettid)});
}

NOTRACE void serve(int thread, int count) {
  for (int i = 0; i < count; ++i) {
    const int slow = i % 97 == 50 + thread ? 2000 + 700 * (i / 97) + 130 * thread : 0;
    timed_request(slow, static_cast<How>(i % 4), i % 31 == 7 ? 3 : 0);
    if (i % 100 == 99) relay(50 * (i / 100));
  }
}

NOTRACE void print() {
  for (const Entry& e : g_log)
    std::printf("%llu %llu %ld\n", static_cast<unsigned long long>(e.inner), static_cast<unsigned long long>(e.outer),
                e.tid);
  std::printf("rate %llu\n", static_cast<unsigned long long>(karst_ticks_per_second()));
  std::fflush(stdout);
  g_log.clear();
}

NOTRACE bool use_plugin(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW);
  auto* work = reinterpret_cast<int (*)(int)>(plugin != nullptr ? dlsym(plugin, "plugin_work") : nullptr);
  if (work == nullptr) return false;
  for (int i = 0; i < 10; ++i) work(i);
  return true;
}

NOTRACE int main(int count, char** arguments) {
  const char* mode = count > 1 ? arguments[1] : "serve";
  if (std::strcmp(mode, "serve") == 0) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t) threads.emplace_back(serve, t, 600);
    for (std::thread& thread : threads) thread.join();
  } else if (std::strcmp(mode, "fork") == 0) {
    serve(0, 200);
    print();
    const pid_t child = fork();
    serve(1, 200);
    if (child == 0) {
      print();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
  } else if (std::strcmp(mode, "kill") == 0) {
    serve(0, 200);
    timed_request(30'000, kThrows, 0);
    print();
    kill(getpid(), SIGKILL);
  } else if (std::strcmp(mode, "wait") == 0) {
    serve(0, 50);
    g_log.clear();
    std::printf("ready\n");
    std::fflush(stdout);
    char line[4096];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
      line[std::strcspn(line, "\n")] = '\0';
      if (*line == '\0')
        serve(2, 300);
      else if (!use_plugin(line))
        return 1;
      print();
    }
    return 0;
  } else if (std::strcmp(mode, "plugin") == 0) {
    if (!use_plugin(arguments[2])) return 1;
  }
  print();
}
