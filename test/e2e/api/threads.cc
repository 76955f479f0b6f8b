// Calls the API from many threads at once. usage: threads DIRECTORY
//
// Each worker's steps spell a number, its own count of steps, in calls; so whoever reads a trace can tell which steps
// are in it. A journal says, for each snapshot, what each worker had done when the range had begun, and before it
// ended: the steps between must be there, unless the snapshot says that they are not.
#include <karst/karst.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {
constexpr int kThreads = 8;
std::atomic<int> g_ready{0};
std::atomic<bool> g_stop{false};
std::atomic<std::uint64_t> g_steps[kThreads];
volatile int g_sink;

__attribute__((noinline)) void zero() { g_sink = 0; }
__attribute__((noinline)) void one() { g_sink = 1; }
/// The lowest bit first.
__attribute__((noinline)) void step(std::uint64_t number) {
  for (int bit = 0; bit < 24; ++bit) (number >> bit & 1) != 0 ? one() : zero();
}

KARST_NOTRACE void work(int t) {
  for (std::uint64_t i = 1; !g_stop; ++i) {
    step(i);
    g_steps[t].store(i);
  }
}

KARST_NOTRACE std::string steps_done() {
  std::string text;
  for (const auto& s : g_steps) text += " " + std::to_string(s.load());
  return text;
}
}  // namespace

int main(int, char** arguments) {
  const std::string directory = arguments[1];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      const std::string name = "worker number " + std::to_string(t) + " of the pool with a long name";
      if (karst_thread_set_name(name.c_str()) != 0) std::puts("name refused");
      step(0);
      ++g_ready;
      work(t);
    });
  }
  while (g_ready != kThreads) std::this_thread::yield();
  std::vector<std::thread> takers;
  std::atomic<int> wrong{0};
  std::mutex mutex;
  std::ofstream journal(directory + "/journal");
  for (int t = 0; t < 4; ++t) {
    takers.emplace_back([&, t] {
      for (int i = 0; i < 2; ++i) {
        const std::string name = "s" + std::to_string(t) + std::to_string(i) + ".karst";
        const std::string path = directory + "/" + name;
        const std::uint64_t since = karst_time();
        const std::string before = steps_done();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::string after = steps_done();
        if (i == 1) {
          wrong += karst_snapshot_save(path.c_str(), since) != 0;
        } else {
          karst_snapshot* s = karst_snapshot_since(since);
          wrong += karst_snapshot_whole_from(s) < since;
          wrong += karst_snapshot_write(s, path.c_str()) != 0;
          karst_snapshot_free(s);
        }
        const std::lock_guard lock(mutex);
        journal << name << before << after << '\n';
      }
    });
  }
  for (std::thread& t : takers) t.join();
  g_stop = true;
  for (std::thread& t : threads) t.join();
  std::printf("%d wrong\n", wrong.load());
}
