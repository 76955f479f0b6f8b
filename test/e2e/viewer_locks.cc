// A small server whose workers stand in line for a cache, for the page's tests: somebody rebuilds it again and again
// while he has its lock, and a journal has a lock of its own.
#include <karst/karst.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

pthread_mutex_t g_cache = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_journal = PTHREAD_MUTEX_INITIALIZER;
constexpr int kWorkers = 4;
constexpr int kRounds = 12;

}  // namespace

namespace server {

__attribute__((noinline)) void rebuild_cache() {
  pthread_mutex_lock(&g_cache);
  usleep(4000);
  pthread_mutex_unlock(&g_cache);
}

__attribute__((noinline)) void append_journal() {
  pthread_mutex_lock(&g_journal);
  usleep(300);
  pthread_mutex_unlock(&g_journal);
}

__attribute__((noinline)) char* find(int round) {
  pthread_mutex_lock(&g_cache);
  usleep(500);
  char* found = new char[64 + round];
  std::memset(found, 'x', 64);
  pthread_mutex_unlock(&g_cache);
  return found;
}

__attribute__((noinline)) void serve(int round) {
  char* found = find(round);
  append_journal();
  if (round % 4 != 0) delete[] found;
}

}  // namespace server

int main() {
  karst_name_lock(&g_cache, "cache");
  karst_name_lock(&g_journal, "journal");
  std::vector<std::thread> threads;
  threads.emplace_back([] {
    pthread_setname_np(pthread_self(), "rebuilder");
    for (int i = 0; i < kRounds; ++i) {
      server::rebuild_cache();
      usleep(2000);
    }
  });
  for (int n = 0; n < kWorkers; ++n)
    threads.emplace_back([n] {
      pthread_setname_np(pthread_self(), ("worker-" + std::to_string(n)).c_str());
      for (int i = 0; i < kRounds; ++i) server::serve(i);
    });
  for (std::thread& thread : threads) thread.join();
}
