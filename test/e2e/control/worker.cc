// Threads that call what the tests switch on and off, until they are told to end; and two that hang in a deadlock.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {
std::atomic<bool> g_end{false};
std::mutex g_first, g_second;
}  // namespace

#define KEEP __attribute__((noipa))

extern "C" {
KEEP void leaf_red() { asm volatile(""); }
KEEP void leaf_blue() { asm volatile(""); }
KEEP void inner(int n) {
  leaf_red();
  leaf_blue();
  if (n > 0) inner(n - 1);
  asm volatile("");
}
KEEP void outer() {
  inner(3);
  asm volatile("");
}
KEEP void paced() { asm volatile(""); }
KEEP void take_second() {
  g_second.lock();
  asm volatile("");
}
KEEP void hold_first() {
  g_first.lock();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  take_second();
  asm volatile("");
}
KEEP void take_first() {
  g_first.lock();
  asm volatile("");
}
KEEP void hold_second() {
  g_second.lock();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  take_first();
  asm volatile("");
}
}

// worker MODE [LIBRARY]: ends when its standard input does.
int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "busy";
  std::vector<std::thread> threads;
  if (std::strcmp(mode, "deadlock") == 0) {
    threads.emplace_back(hold_first);
    threads.emplace_back(hold_second);
  } else if (std::strcmp(mode, "hot") == 0) {
    threads.emplace_back([] {
      while (!g_end) outer();
    });
  } else if (std::strcmp(mode, "paced") == 0) {
    threads.emplace_back([] {  // 1000 calls a second
      auto next = std::chrono::steady_clock::now();
      while (!g_end) {
        paced();
        std::this_thread::sleep_until(next += std::chrono::milliseconds(1));
      }
    });
  } else {
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([] {
        while (!g_end) {
          outer();
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
      });
    }
    if (argc > 2) {
      threads.emplace_back([library = argv[2]] {
        while (!g_end) {
          void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
          if (handle == nullptr) std::abort();
          auto* call = reinterpret_cast<void (*)()>(dlsym(handle, "in_library"));
          for (int i = 0; i < 20; ++i) call();
          dlclose(handle);
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    }
  }
  std::printf("ready\n");
  std::fflush(stdout);
  char byte = 0;
  while (read(0, &byte, 1) > 0) {
  }
  g_end = true;
  if (std::strcmp(mode, "deadlock") == 0) _exit(0);
  for (auto& t : threads) t.join();
  return 0;
}
