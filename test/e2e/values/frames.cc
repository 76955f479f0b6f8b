// Frames of two names: in frame N of "picture" the first thread calls step() N times, and a second thread all the time.
#include <karst/karst.h>

#include <atomic>
#include <thread>

std::atomic<bool> done;
std::atomic<int> others;

__attribute__((noinline)) int step(int n) {
  asm volatile("" ::: "memory");
  return n + 1;
}

__attribute__((noinline)) int other(int n) {
  for (volatile int i = 0; i < 200; i = i + 1) {
  }
  return n + 1;
}

int main(int argc, char**) {
  int sum = 0;
  std::thread second([&] {
    for (int n = 0; !done; ++n, ++others) other(n);
  });
  for (int frame = 1; frame <= 40; ++frame) {
    for (int n = 0; n < frame; ++n) sum += step(n);
    for (const int before = others; others < before + 20;) {
    }
    KARST_FRAME("picture");
    if (argc > 1 && frame % 10 == 0) KARST_FRAME("sound");
  }
  done = true;
  second.join();
  return sum == 0;
}
