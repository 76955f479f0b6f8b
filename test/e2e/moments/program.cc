// What triggers are set at. usage: program [PLUGIN]
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

volatile int g_sink;

__attribute__((noinline)) void leaf(int i) { g_sink = g_sink + i; }
__attribute__((noinline)) void before_it(int i) { leaf(i); }
__attribute__((noinline)) void rare(int number, long factor) { g_sink = static_cast<int>(number * factor); }
__attribute__((noinline)) void over(int i) { leaf(i); }
__attribute__((noinline)) void over(double d) { leaf(static_cast<int>(d)); }
__attribute__((noinline)) int tail_target(int i) {
  g_sink = i;
  return i;
}
__attribute__((noinline)) int tail_caller(int i) { return tail_target(i + 1); }
__attribute__((always_inline)) inline void tiny(int i) { g_sink = i * 3; }
__attribute__((noinline)) void contains_tiny(int i) {
  tiny(i);
  leaf(i);
}
__attribute__((noinline, no_instrument_function)) void untraced(int i) { g_sink = i; }
__attribute__((noinline)) void in_thread(int i) { leaf(i); }

int main(int count, char** arguments) {
  for (int i = 0; i < 100; ++i) before_it(i);
  rare(7, 1234567);
  over(1);
  over(2.5);
  tail_caller(4);
  contains_tiny(5);
  untraced(6);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([t] { in_thread(t); });
  for (std::thread& thread : threads) thread.join();
  if (count > 1) {
    void* plugin = dlopen(arguments[1], RTLD_NOW);
    if (plugin == nullptr) std::puts(dlerror());
    auto work = reinterpret_cast<int (*)(int)>(dlsym(plugin, "plugin_work"));
    // Libraries without sleds are noticed within some hundredths of a second.
    for (int i = 0; i < 100; ++i) {
      g_sink = work(i);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::puts("done");
}
