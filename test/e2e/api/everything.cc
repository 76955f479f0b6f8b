// Each function of the API by many threads at once, and in handlers of signals that come at any time: in the middle of
// malloc, of hooks and of the API itself. usage: everything DIRECTORY
#include <karst/karst.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {
std::atomic<int> g_wrong{0};
std::atomic<int> g_handled{0};
std::atomic<int> g_saved{0};
char g_path[4096];
volatile int g_sink;
constexpr int kHandled = 40;

__attribute__((noinline)) void leaf(int i) { g_sink = i; }
__attribute__((noinline)) void work(int i) {
  for (int k = 0; k < 20; ++k) leaf(i + k);
}

KARST_NOTRACE void expect(bool right) { g_wrong += right ? 0 : 1; }

void handler(int) {
  const int error = errno;
  work(g_handled);
  expect(karst_time() != 0);
  expect(karst_ticks_per_second() > 100'000'000);
  karst_snapshot* s = karst_snapshot_last(karst_ticks_per_second() / 1000);
  expect(s != nullptr && karst_snapshot_whole_from(s) != 0);
  if (g_handled.fetch_add(1) % 8 == 0) {
    expect(karst_snapshot_write(s, g_path) == 0);
    ++g_saved;
  }
  karst_snapshot_free(s);
  expect(karst_thread_set_name("a thread that was interrupted") == 0);
  expect(errno == error);
}

KARST_NOTRACE void use_all(int t, const std::string& directory) {
  const std::string path = directory + "/thread" + std::to_string(t) + ".karst";
  for (int i = 0; i < 6; ++i) {
    work(i);
    void* memory = std::malloc(static_cast<std::size_t>(i) * 1000 + 1);
    const std::uint64_t since = karst_time();
    expect(karst_thread_set_name(("thread " + std::to_string(t)).c_str()) == 0);
    expect(karst_thread_set_history(64 << 10) == 0);
    karst_snapshot* s = i % 2 == 0 ? karst_snapshot_all() : karst_snapshot_since(since);
    expect(s != nullptr);
    if (i == 0) expect(karst_snapshot_write(s, path.c_str()) == 0);
    karst_snapshot_free(s);
    if (i == 1) expect(karst_snapshot_save(path.c_str(), 0) == 0);
    if (i == 2) {
      // Several at once: each is done when it returns, or says that it has waited for a second.
      const int off = karst_disable();
      const int on = karst_enable();
      expect((off == 0 || off == -ETIMEDOUT) && (on == 0 || on == -ETIMEDOUT));
    }
    std::free(memory);
  }
  expect(karst_thread_ignore() == 0);
  work(7);
}
}  // namespace

int main(int, char** arguments) {
  const std::string directory = arguments[1];
  std::snprintf(g_path, sizeof g_path, "%s/handler.karst", arguments[1]);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(use_all, t, directory);
  setitimer(ITIMER_PROF, &often, nullptr);  // the process's CPU time: any thread is interrupted
  for (std::thread& t : threads) t.join();
  while (g_handled < kHandled) {
    void* memory = std::malloc(100);
    work(g_handled);
    std::free(memory);
  }
  const itimerval never{};
  setitimer(ITIMER_PROF, &never, nullptr);
  expect(karst_enable() == 0);
  std::printf("%d wrong, %s\n", g_wrong.load(), g_saved > 0 ? "saved" : "none saved");
}
