// A consumer that waits for a producer, a call that computes, a call that sleeps: for thread states.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace {
std::mutex mutex;
std::condition_variable changed;
std::deque<int> queue;
volatile unsigned sink;
}  // namespace

__attribute__((noinline)) int take() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [] { return !queue.empty(); });
  const int value = queue.front();
  queue.pop_front();
  return value;
}

__attribute__((noinline)) void put(int value) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(value);
  }
  changed.notify_one();
}

__attribute__((noinline)) void compute(int rounds) {
  for (int i = 0; i < rounds; ++i) sink = sink + static_cast<unsigned>(i);
}

__attribute__((noinline)) void doze() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

__attribute__((noinline)) void consume() {
  while (take() >= 0) compute(1000);
}

int main() {
  std::thread consumer(consume);
  for (int i = 0; i < 10; ++i) {
    doze();
    put(i);
  }
  compute(30'000'000);
  put(-1);
  consumer.join();
}
