// A pool of threads: pool THREADS ROUNDS HELD_US FREE_US. Each holds the one lock for HELD_US, and works for FREE_US
// without it, so many times.
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::mutex ledger_mutex;
volatile long ledger = 0;

}  // namespace

__attribute__((noinline)) void book(int held_us) {
  const std::lock_guard lock(ledger_mutex);
  ledger = ledger + 1;
  if (held_us != 0) usleep(static_cast<useconds_t>(held_us));
}

__attribute__((noinline)) void compute(int free_us) {
  if (free_us != 0) usleep(static_cast<useconds_t>(free_us));
}

__attribute__((noinline)) void work(int rounds, int held_us, int free_us) {
  for (int round = 0; round < rounds; ++round) {
    book(held_us);
    compute(free_us);
  }
}

int main(int, char** argv) {
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(argv[1]); ++i)
    threads.emplace_back(work, std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  for (std::thread& thread : threads) thread.join();
  return ledger == std::atol(argv[1]) * std::atol(argv[2]) ? 0 : 1;
}
