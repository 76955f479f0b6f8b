// Calls the API from many threads at once. usage: threads DIRECTORY
// Each thread counts its own calls, names itself and takes snapshots; the printed facts are what the test compares
// with.
#include <karst/karst.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {
constexpr int kThreads = 8;
std::atomic<int> g_ready{0};
std::atomic<bool> g_stop{false};
volatile int g_sink;
}  // namespace

__attribute__((noinline)) void leaf(int i) { g_sink = i; }
__attribute__((noinline)) void marked_step(int i) {
  for (int k = 0; k < 10; ++k) leaf(i + k);
}
__attribute__((noinline)) void work() {
  for (int i = 0; !g_stop; ++i) marked_step(i);
}

int main(int, char** arguments) {
  const std::string directory = arguments[1];
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      const std::string name = "worker number " + std::to_string(t) + " of the pool with a long name";
      if (karst_thread_set_name(name.c_str()) != 0) std::puts("name refused");
      marked_step(0);
      ++g_ready;
      work();
    });
  }
  while (g_ready != kThreads) std::this_thread::yield();
  std::vector<std::thread> takers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    takers.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        const std::string path = directory + "/s" + std::to_string(t) + std::to_string(i) + ".karst";
        const std::uint64_t since = karst_time();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (i == 2) {
          wrong += karst_snapshot_save(path.c_str(), since) != 0;
          continue;
        }
        karst_snapshot* s = i == 0 ? karst_snapshot_since(since) : karst_snapshot_last(karst_ticks_per_second() / 500);
        wrong += karst_snapshot_write(s, path.c_str()) != 0;
        karst_snapshot_free(s);
      }
    });
  }
  for (std::thread& t : takers) t.join();
  g_stop = true;
  for (std::thread& t : threads) t.join();
  std::printf("%d wrong\n", wrong.load());
}
