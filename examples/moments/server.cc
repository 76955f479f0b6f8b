// A server that keeps, of each type of request, the slowest one so far: what all of its threads did meanwhile.
//
//   karst-g++ -Og -g -pthread server.cc -o server && karst run ./server
//   karst tree slowest-report.karst
#include <karst/karst.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Of each type, the ticks that its slowest request took.
class Slowest {
 public:
  /// A request of this type has taken from `begin` until now.
  void finished(const std::string& type, std::uint64_t begin) {
    const std::uint64_t ticks = karst_time() - begin;
    const std::lock_guard lock(mutex_);
    std::uint64_t& slowest = ticks_[type];
    if (ticks <= slowest) return;
    slowest = ticks;
    // A margin of a millisecond: what came before is often the reason.
    const std::uint64_t since = begin - karst_ticks_per_second() / 1000;
    karst_snapshot_save(("slowest-" + type + ".karst").c_str(), since);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> ticks_;
};

Slowest g_slowest;

}  // namespace

void compress_page(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
void query_database(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

void serve_page(int i) { compress_page(i == 7 ? 20 : 1); }
void serve_report(int i) {
  query_database(i == 3 ? 30 : 2);
  compress_page(1);
}

void serve_requests() {
  karst_thread_set_name("worker that serves pages and reports");
  for (int i = 0; i < 10; ++i) {
    std::uint64_t begin = karst_time();
    serve_page(i);
    g_slowest.finished("page", begin);
    begin = karst_time();
    serve_report(i);
    g_slowest.finished("report", begin);
  }
}

int main() {
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) workers.emplace_back(serve_requests);
  for (std::thread& worker : workers) worker.join();
  std::puts("served");
}
