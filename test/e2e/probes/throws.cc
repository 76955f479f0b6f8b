// Throws, catches and throws on: libstdc++ has a probe for each. Prints how often.
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

struct Own {
  int number;
};

int throws(int i) {
  if (i % 3 == 0) throw Own{i};
  if (i % 3 == 1) throw std::runtime_error("one");
  throw i;
}

int pass(int i) {
  try {
    return throws(i);
  } catch (const std::runtime_error&) {
    throw;
  }
}

void work(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    try {
      pass(i);
    } catch (const Own&) {
    } catch (const std::exception&) {
    } catch (int) {
    }
  }
}

}  // namespace

int main() {
  constexpr int kThreads = 4, kRounds = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, kRounds);
  for (std::thread& t : threads) t.join();
  std::printf("throw %d rethrow %d catch %d\n", kThreads * kRounds, kThreads * kRounds / 3,
              kThreads * (kRounds + kRounds / 3));
  return 0;
}
