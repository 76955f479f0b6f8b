// Thousands of requests on four threads, some slow, some nested, some that end by an exception or a jump; and between
// them so many calls that a small memory wraps again and again. Prints its own stopwatch's log: microseconds of each
// request, and how it ended.
#include <karst/karst.h>

#include <chrono>
#include <csetjmp>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {
std::mutex g_mutex;
std::vector<long> g_log;
volatile int g_sink;
}  // namespace

__attribute__((noinline)) void leaf(int i) { g_sink = i; }
__attribute__((noinline)) void pause_for(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void timed_request(int ms, int how, int depth);

/// 0 returns, 1 throws, 2 jumps.
__attribute__((noinline)) void request(int ms, int how, int depth, std::jmp_buf& out) {
  for (int i = 0; i < 2000; ++i) leaf(i);
  if (ms != 0) pause_for(ms);
  if (depth != 0) timed_request(ms / 2, 0, depth - 1);
  if (how == 1) throw std::runtime_error("request");
  if (how == 2) std::longjmp(out, 1);
}

KARST_NOTRACE void timed_request(int ms, int how, int depth) {
  std::jmp_buf out;
  const auto begin = std::chrono::steady_clock::now();
  try {
    if (setjmp(out) == 0) request(ms, how, depth, out);
  } catch (const std::runtime_error&) {
  }
  const auto end = std::chrono::steady_clock::now();
  const std::lock_guard lock(g_mutex);
  g_log.push_back(std::chrono::duration_cast<std::chrono::microseconds>(end - begin).count());
}

KARST_NOTRACE void serve(int thread) {
  for (int i = 0; i < 600; ++i) {
    // So that memory takes half a second to wrap: whoever watches may not get a processor at once.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (i == 150 + 7 * thread)
      timed_request(60 + 40 * thread, thread % 3, thread == 0 ? 2 : 0);
    else
      timed_request(0, i % 100 == 99 ? 1 + i / 100 % 2 : 0, i % 10 == 5 ? 3 : 0);
  }
}

int main() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(serve, t);
  for (std::thread& thread : threads) thread.join();
  for (const long us : g_log) std::printf("%ld\n", us);
}
