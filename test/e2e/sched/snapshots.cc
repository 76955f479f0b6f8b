// Threads that wait and compute, and a main thread that does what its standard input says:
//   save PATH   a snapshot by the program itself; answers "saved RESULT MILLISECONDS"
//   rare        calls rare(), for a trigger, and request() for long, to be kept
#include <karst/karst.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

std::atomic<bool> g_stop{false};
std::atomic<unsigned> g_sink{0};

__attribute__((noinline)) void request(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

__attribute__((noinline)) void rare(int number) { g_sink += static_cast<unsigned>(number); }

__attribute__((noinline)) void turn() {
  for (unsigned i = 0; i < 200'000; ++i) g_sink += i;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int main() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([] {
      while (!g_stop) turn();
    });
  std::cout << "ready" << std::endl;
  for (std::string word; std::cin >> word;) {
    if (word == "rare") {
      request(20);
      rare(7);
      request(1);
      std::cout << "done" << std::endl;
    } else if (word == "save") {
      std::string path;
      std::cin >> path;
      const auto begin = std::chrono::steady_clock::now();
      const int result = karst_snapshot_save(path.c_str(), 0);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      std::cout << "saved " << result << " " << took.count() << std::endl;
    }
  }
  g_stop = true;
  for (std::thread& thread : threads) thread.join();
}
