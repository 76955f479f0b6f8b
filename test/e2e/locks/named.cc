// named [LIBRARY]: waits once for each lock in static data, and prints `ADDRESS NAME` of each. Whoever waits sleeps.
// LIBRARY has a lock of its own (named_library.cc).
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "asleep.h"

struct Part {
  long before = 0;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
};
struct Base {
  std::mutex of_base;
};
struct Server : Base {
  long requests = 0;
  Part parts[2];
  std::shared_mutex table;
};

pthread_mutex_t g_plain = PTHREAD_MUTEX_INITIALIZER;
namespace app {
std::mutex cache;
static std::recursive_mutex hidden;
struct Journal {
  static std::mutex all;
};
std::mutex Journal::all;
}  // namespace app
Server g_server;
pthread_mutex_t g_many[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                             PTHREAD_MUTEX_INITIALIZER};

template <typename Lock>
void wait_for(Lock& lock, const void* address, const char* name) {
  std::atomic<pid_t> waiter{0};
  lock.lock();
  std::thread thread([&] {
    waiter = gettid();
    lock.lock();
    lock.unlock();
  });
  while (waiter == 0) usleep(50);
  await_sleep(waiter);
  lock.unlock();
  thread.join();
  printf("%p %s\n", address, name);
}

struct Plain {
  explicit Plain(pthread_mutex_t* of) : mutex(of) {}
  void lock() { pthread_mutex_lock(mutex); }
  void unlock() { pthread_mutex_unlock(mutex); }
  pthread_mutex_t* mutex;
};

std::mutex& local() {
  static std::mutex of_function;
  return of_function;
}

int main(int argc, char** argv) {
  const auto plain = [](pthread_mutex_t& mutex, const char* name) {
    Plain wrapped(&mutex);
    wait_for(wrapped, &mutex, name);
  };
  const auto own = [](auto& mutex, const char* name) { wait_for(mutex, &mutex, name); };
  plain(g_plain, "g_plain");
  own(app::cache, "app::cache");
  own(app::hidden, "app::hidden");
  own(app::Journal::all, "app::Journal::all");
  own(g_server.of_base, "g_server.of_base");
  plain(g_server.parts[1].lock, "g_server.parts[1].lock");
  own(g_server.table, "g_server.table");
  plain(g_many[2], "g_many[2]");
  own(local(), "local()::of_function");
  std::mutex on_stack;
  own(on_stack, "");
  const auto on_heap = std::make_unique<std::mutex>();
  own(*on_heap, "");
  if (argc == 1) return 0;
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) return 2;
  auto* lock = reinterpret_cast<pthread_mutex_t* (*)()>(dlsym(library, "library_lock"))();
  plain(*lock, "g_of_library");
}
