// rings SEED ring|order|guarded|alone: threads take locks in pairs. `order`: always the one with the lower number
// first. `ring`: besides, 3 to 5 locks are taken in a ring, each part by a thread of its own, one after the other, so
// that nobody ever waits; `ring: LOCK...` says which. `guarded`: that ring under one lock. `alone`: by one thread.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#define CALL __attribute__((noinline, noclone))

constexpr int kLocks = 10;
static pthread_mutex_t g_locks[kLocks];
static pthread_mutex_t g_gate = PTHREAD_MUTEX_INITIALIZER;

CALL void take_two(int first, int second) {
  pthread_mutex_lock(&g_locks[first]);
  pthread_mutex_lock(&g_locks[second]);
  pthread_mutex_unlock(&g_locks[second]);
  pthread_mutex_unlock(&g_locks[first]);
}
CALL void take_part(int first, int second) {
  pthread_mutex_lock(&g_locks[first]);
  pthread_mutex_lock(&g_locks[second]);
  pthread_mutex_unlock(&g_locks[second]);
  pthread_mutex_unlock(&g_locks[first]);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto seed = static_cast<unsigned>(atoi(argv[1]));
  const auto is = [&](const char* what) { return strcmp(argv[2], what) == 0; };
  std::mt19937 random(seed);
  for (pthread_mutex_t& lock : g_locks) pthread_mutex_init(&lock, nullptr);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([=] {
      std::mt19937 own(seed * 10 + i);
      for (int round = 0; round < 200; ++round) {
        const int a = static_cast<int>(own() % kLocks), b = static_cast<int>(own() % kLocks);
        if (a != b) take_two(std::min(a, b), std::max(a, b));
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (is("order")) return 0;
  std::vector<int> ring(kLocks);
  std::iota(ring.begin(), ring.end(), 0);
  std::shuffle(ring.begin(), ring.end(), random);
  ring.resize(3 + random() % 3);
  // Other locks than those above: what is taken there would be parts of rings as well.
  for (const int i : ring) pthread_mutex_init(&g_locks[i], nullptr);
  printf("ring:");
  for (const int i : ring) printf(" %p", static_cast<void*>(&g_locks[i]));
  puts("");
  const auto part = [&](std::size_t i) {
    if (is("guarded")) pthread_mutex_lock(&g_gate);
    take_part(ring[i], ring[(i + 1) % ring.size()]);
    if (is("guarded")) pthread_mutex_unlock(&g_gate);
  };
  std::vector<std::size_t> order(ring.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  if (is("alone")) std::thread([&] { std::for_each(order.begin(), order.end(), part); }).join();
  if (!is("alone"))
    for (const std::size_t i : order) std::thread([&] { part(i); }).join();
  return 0;
}
