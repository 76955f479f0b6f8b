// A server with a rare slow request, for the question "what was it?". Four workers answer requests. Each looks into a
// cache under one mutex and writes a line under another; one request in a thousand finds the writer's buffer full and
// flushes it to a slow disk, with the cache's mutex held by mistake: whoever comes then waits for both.
//   server [REQUESTS]   answers so many in all (4000) and prints how many took over 5 ms
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
// In a server of several source files nothing of this would be inlined.
#define KEEP_CALL __attribute__((noinline))

class Disk {
 public:
  KEEP_CALL void flush(std::string& buffer) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a disk that is busy
    buffer.clear();
  }
};

class Journal {
 public:
  KEEP_CALL void append(int request, bool full) {
    const std::lock_guard lock(mutex_);
    buffer_ += std::to_string(request);
    if (full) disk_.flush(buffer_);
  }

 private:
  std::mutex mutex_;
  std::string buffer_;
  Disk disk_;
};

class Cache {
 public:
  KEEP_CALL std::string lookup(int request, Journal& journal) {
    const std::lock_guard lock(mutex_);
    std::string& entry = entries_[request % 97];
    if (entry.empty()) entry = std::to_string(request);
    if (request % 1000 == 999) journal.append(request, true);  // the mistake: the cache is locked meanwhile
    return entry;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::string> entries_;
};

class Server {
 public:
  KEEP_CALL void serve(int request) {
    const auto begin = Clock::now();
    const std::string entry = cache_.lookup(request, journal_);
    render(entry, request);
    journal_.append(request, false);
    if (Clock::now() - begin > std::chrono::milliseconds(5)) ++slow_;
  }

  void work(int requests) {
    for (int request = next_++; request < requests; request = next_++) serve(request);
  }

  int slow() const { return slow_; }

 private:
  KEEP_CALL void render(const std::string& entry, int request) {
    unsigned hash = 0;
    for (int i = 0; i < 2000; ++i) hash = hash * 31 + static_cast<unsigned char>(entry[i % entry.size()]);
    sum_ += hash + static_cast<unsigned>(request);
  }

  Cache cache_;
  Journal journal_;
  std::atomic<int> next_{0};
  std::atomic<int> slow_{0};
  std::atomic<unsigned> sum_{0};
};

int main(int argc, char** argv) {
  const int requests = argc > 1 ? std::max(1, std::atoi(argv[1])) : 4000;
  Server server;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) workers.emplace_back([&server, requests] { server.work(requests); });
  for (std::thread& worker : workers) worker.join();
  std::printf("%d requests, %d of them took over 5 ms\n", requests, server.slow());
  return 0;
}
