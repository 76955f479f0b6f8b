// A program with frames that says itself how long each took, by its own clock: one line for each, `NAME NUMBER NS`. One
// of the main ones is far slower than all others.
#include <karst/karst.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace game {

using Clock = std::chrono::steady_clock;

__attribute__((noinline)) void draw(int milliseconds) { ::usleep(static_cast<useconds_t>(milliseconds) * 1000); }

__attribute__((noinline)) void load_level() { ::usleep(90'000); }

}  // namespace game

int main() {
  using game::Clock;
  std::vector<long long> took;
  std::thread audio([] {
    for (int i = 0; i < 60; ++i) {
      ::usleep(5000);
      KARST_FRAME("audio");
    }
  });
  KARST_FRAME("Frame");
  Clock::time_point last = Clock::now();
  for (int i = 2; i <= 80; ++i) {
    game::draw(i % 10 == 0 ? 22 : 3);
    if (i == 47) game::load_level();
    KARST_FRAME("Frame");
    const Clock::time_point now = Clock::now();
    took.push_back((now - last).count());
    last = now;
  }
  audio.join();
  for (std::size_t i = 0; i < took.size(); ++i) std::printf("Frame %zu %lld\n", i + 2, took[i]);
}
