// A small server: requests are taken up by two threads, write a journal under a lock, and are answered. One of them
// meets a slow write. It says what it does with karst.h.
#include <fcntl.h>
#include <karst/karst.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t kRequests = 60;
constexpr std::uint64_t kSlow = 37;

std::mutex queue_mutex, journal_mutex;
std::condition_variable changed;
std::deque<std::uint64_t> queue;
int journal = -1;
volatile std::uint64_t sink = 0;

}  // namespace

__attribute__((noinline)) std::uint64_t parse(std::uint64_t id) {
  std::uint64_t sum = id;
  for (std::uint64_t i = 0; i < 2000 + id * 10; ++i) sum = sum * 6364136223846793005U + i;
  return sum;
}

__attribute__((noinline)) void look_up(std::uint64_t key) { sink = sink + key; }

__attribute__((noinline)) void append(std::uint64_t id) {
  const std::lock_guard lock(journal_mutex);
  const std::string line = "request " + std::to_string(id) + "\n";
  if (write(journal, line.data(), line.size()) < 0) std::abort();
  if (id == kSlow) usleep(20000);
}

__attribute__((noinline)) void serve(std::uint64_t id) {
  const std::uint64_t parsed = parse(id);
  for (std::uint64_t i = 0; i < 5 + id % 3; ++i) look_up(parsed + i);
  append(id);
  karst_message(id == kSlow ? "slow one" : "served");
}

__attribute__((noinline)) bool take(std::uint64_t& id) {
  std::unique_lock lock(queue_mutex);
  changed.wait(lock, [] { return !queue.empty(); });
  id = queue.front();
  queue.pop_front();
  return id != 0;
}

__attribute__((noinline)) void work() {
  std::uint64_t id = 0;
  while (take(id)) {
    karst_request(id);
    karst_flow_end(id);
    serve(id);
    karst_request(0);
    karst_request_end(id);
  }
}

__attribute__((noinline)) void put(std::uint64_t id) {
  if (id != 0) {
    karst_request_begin(id);
    karst_flow(id);
  }
  const std::lock_guard lock(queue_mutex);
  queue.push_back(id);
  changed.notify_one();
}

int main(int, char** argv) {
  close(open("/dev/null", O_RDONLY));  // for nothing
  journal = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) workers.emplace_back(work);
  for (std::uint64_t id = 1; id <= kRequests; ++id) put(id);
  for (std::size_t i = 0; i < workers.size(); ++i) put(0);
  for (std::thread& worker : workers) worker.join();
  close(journal);
  return 0;
}
