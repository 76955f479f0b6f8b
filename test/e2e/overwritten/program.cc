// Two threads make more calls than fit into a megabyte, with locks, allocations and files. Main makes none in the end.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#define CALL __attribute__((noinline, noclone))

static std::mutex g_lock;
static void* volatile g_last;

CALL void allocate() {
  g_last = malloc(100);
  free(g_last);
}
CALL void look() {
  const int file = open("/proc/self/comm", O_RDONLY);
  char text[20];
  if (file < 0 || read(file, text, sizeof text) <= 0) _exit(1);
  close(file);
}
CALL void work(int i) {
  const std::lock_guard guard(g_lock);
  allocate();
  if (i % 100 == 0) look();
}

int main() {
  const auto all = [] {
    for (int i = 0; i < 100'000; ++i) work(i);
  };
  std::thread thread(all);
  all();
  thread.join();
}
