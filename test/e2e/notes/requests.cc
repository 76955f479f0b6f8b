// Requests that go from thread to thread, and what was done for each as the program itself counts it.
//   requests LOG [REQUESTS]
// A line of LOG: request, threads that worked on it, calls of step() for it. Request 13 waits 30 ms in a queue; request
// 17 is slow in its second half.
#include <karst/karst.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#define KEEP_CALL __attribute__((noinline))

namespace {

struct Request {
  unsigned id;
  int first_steps, second_steps;
  std::set<std::thread::id> threads;
  int steps = 0;
};

class Queue {
 public:
  KEEP_CALL void push(Request* request) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(request);
    changed_.notify_one();
  }
  KEEP_CALL Request* pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !waiting_.empty(); });
    Request* const request = waiting_.front();
    waiting_.pop_front();
    return request;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request*> waiting_;
};

volatile unsigned g_sum;

}  // namespace

KEEP_CALL void step(unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) g_sum = g_sum + i;
}

KEEP_CALL void slow_step() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

KEEP_CALL void take_steps(Request& request, int count) {
  request.threads.insert(std::this_thread::get_id());
  for (int i = 0; i < count; ++i) step(50);
  request.steps += count;
}

KEEP_CALL void parse(Request& request) { take_steps(request, request.first_steps); }

KEEP_CALL void answer(Request& request) {
  take_steps(request, request.second_steps);
  if (request.id == 17) slow_step();
}

KEEP_CALL void work(Queue& from, Queue* to) {
  while (Request* const request = from.pop()) {
    karst_request(request->id);
    if (to != nullptr) {
      parse(*request);
      karst_request(0);
      to->push(request);
    } else {
      answer(*request);
      karst_request_end(request->id);
      karst_request(0);
    }
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int count = argc > 2 ? std::atoi(argv[2]) : 100;
  std::mt19937 random(1);
  std::vector<Request> requests(static_cast<std::size_t>(count));
  Queue first, second;
  std::vector<std::thread> parsers, answerers;
  for (int i = 0; i < 2; ++i) parsers.emplace_back([&] { work(first, &second); });
  for (int i = 0; i < 2; ++i) answerers.emplace_back([&] { work(second, nullptr); });
  for (int i = 0; i < count; ++i) {
    Request& request = requests[static_cast<std::size_t>(i)];
    request.id = static_cast<unsigned>(i) + 1;
    request.first_steps = static_cast<int>(random() % 20);
    request.second_steps = static_cast<int>(random() % 20);
    karst_request_begin(request.id);
    if (request.id == 13) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    first.push(&request);
  }
  for (std::size_t i = 0; i < parsers.size(); ++i) first.push(nullptr);
  for (std::thread& thread : parsers) thread.join();
  for (std::size_t i = 0; i < answerers.size(); ++i) second.push(nullptr);
  for (std::thread& thread : answerers) thread.join();
  std::FILE* const log = std::fopen(argv[1], "w");
  if (log == nullptr) return 1;
  for (const Request& request : requests)
    std::fprintf(log, "%u %zu %d\n", request.id, request.threads.size(), request.steps);
  return std::fclose(log) == 0 ? 0 : 1;
}
