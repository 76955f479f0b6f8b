// Items go from thread to thread, each a flow, and a number is used again when its flow has ended. Prints what it said:
// for each step flow, function, thread and whether it is the last one, in order.
#include <karst/karst.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#define NOTRACE KARST_NOTRACE __attribute__((noinline))

struct Item {
  uint64_t flow;
  int steps;  // that are left
};

static std::mutex g_mutex;  // of all below
static std::condition_variable g_comes;
static std::deque<Item> g_items;
static int g_left;
static std::vector<std::string> g_said;

// The lock makes the order of what is logged that of what is said.
NOTRACE static void say(Item& item, const char* in) {
  const std::lock_guard lock(g_mutex);
  const bool last = item.steps == 1;
  char line[100];
  snprintf(line, sizeof line, "%llu %s %ld %d", static_cast<unsigned long long>(item.flow), in,
           static_cast<long>(syscall(SYS_gettid)), last);
  g_said.emplace_back(line);
  if (last)
    karst_flow_end(item.flow);
  else
    karst_flow(item.flow);
}

__attribute__((noinline)) static void make(Item& item) {
  say(item, "make");
  asm volatile("" ::: "memory");  // no tail call
}
__attribute__((noinline)) static void change(Item& item) {
  say(item, "change");
  asm volatile("" ::: "memory");  // no tail call
}
__attribute__((noinline)) static void store(Item& item) {
  say(item, "store");
  asm volatile("" ::: "memory");  // no tail call
}

NOTRACE static void put(const Item& item) {
  {
    const std::lock_guard lock(g_mutex);
    g_items.push_back(item);
  }
  g_comes.notify_one();
}

NOTRACE static bool take(Item& item) {
  std::unique_lock lock(g_mutex);
  g_comes.wait(lock, [] { return !g_items.empty() || g_left == 0; });
  if (g_items.empty()) return false;
  item = g_items.front();
  g_items.pop_front();
  return true;
}

NOTRACE static void work(unsigned seed) {
  std::mt19937 random(seed);
  Item item;
  while (take(item)) {
    if (item.steps == 1)
      store(item);
    else
      change(item);
    if (--item.steps != 0) {
      put(item);
    } else {
      const std::lock_guard lock(g_mutex);
      if (--g_left == 0) g_comes.notify_all();
    }
    if (random() % 8 == 0) std::this_thread::yield();
  }
}

NOTRACE static void wait_until_left(int left) {
  for (std::unique_lock lock(g_mutex); g_left > left; lock.lock()) {
    lock.unlock();
    std::this_thread::yield();
  }
}

int main() {
  std::mt19937 random(1);
  // A flow that is never ended, one of a single step, and the greatest number.
  g_left = 300;
  Item whole{~uint64_t{0}, 2};
  make(whole);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (int i = 0; i < 300; ++i) {
    // Numbers come back, but not before their flow has ended.
    Item item{static_cast<uint64_t>(i) % 100 + 1, static_cast<int>(random() % 6) + 2};
    if (i % 100 == 0) wait_until_left(300 - i);
    make(item);
    --item.steps;
    put(item);
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& line : g_said) puts(line.c_str());
}
