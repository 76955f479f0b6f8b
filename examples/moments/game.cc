// A game loop: each frame that takes more than 16 ms is kept.
//
//   karst-g++ -Og -g game.cc -o game && karst run ./game
//   karst tree slow-frame-1.karst
#include <karst/karst.h>

#include <chrono>
#include <cstdio>
#include <thread>

void simulate(int frame) { std::this_thread::sleep_for(std::chrono::milliseconds(frame == 20 ? 25 : 1)); }
void draw() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

void frame(int number) {
  simulate(number);
  draw();
}

int main() {
  const std::uint64_t most = karst_ticks_per_second() * 16 / 1000;
  int slow = 0;
  for (int number = 0; number < 40; ++number) {
    const std::uint64_t begin = karst_time();
    frame(number);
    if (karst_time() - begin <= most || slow == 5) continue;
    char path[64];
    std::snprintf(path, sizeof path, "slow-frame-%d.karst", ++slow);
    if (karst_snapshot_save(path, begin) == 0) std::printf("frame %d was slow: %s\n", number, path);
  }
}
