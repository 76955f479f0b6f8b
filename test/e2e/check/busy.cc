// A thread asks whether another one is done, again and again.
#include <unistd.h>

#include <atomic>
#include <thread>

namespace {

std::atomic<bool> done{false};
std::atomic<long> asked{0};

}  // namespace

__attribute__((noinline)) bool is_done() {
  ++asked;
  return done.load();
}

__attribute__((noinline)) void wait_until_done() {
  while (!is_done()) {
  }
}

__attribute__((noinline)) void prepare() {
  while (asked.load() < 5000) usleep(1000);
  usleep(5000);
  done = true;
}

int main() {
  std::thread other(prepare);
  wait_until_done();
  other.join();
  return 0;
}
