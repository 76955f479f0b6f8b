// What triggers are set at in processes that come of others. usage: processes fork|exec|attach [PLUGIN]
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

volatile int g_sink;

__attribute__((noinline)) void leaf(int i) { g_sink = i; }
__attribute__((noinline)) void before_it(int i) { leaf(i); }
__attribute__((noinline)) void in_child(int i) { g_sink = i; }
__attribute__((noinline, no_instrument_function)) void untraced_in_child(int i) { g_sink = -i; }
__attribute__((noinline)) void after_exec(int i) { g_sink = i; }

/// A child that makes calls, comes to the places, and ends.
static void run_child(int i, const char* plugin) {
  const pid_t child = fork();
  if (child != 0) {
    waitpid(child, nullptr, 0);
    return;
  }
  untraced_in_child(i);  // before its first traced call
  before_it(i);
  std::thread([i] { in_child(i); }).join();
  if (plugin != nullptr) {
    void* library = dlopen(plugin, RTLD_NOW);
    if (library == nullptr) std::puts(dlerror());
    const auto work = reinterpret_cast<int (*)(int)>(dlsym(library, "plugin_work"));
    for (int n = 0; n < 100; ++n) {
      g_sink = work(n);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  // Who is attached reads memory that goes with the process.
  if (i == 5) std::this_thread::sleep_for(std::chrono::seconds(1));
  _exit(0);
}

int main(int count, char** arguments) {
  const char* how = count > 1 ? arguments[1] : "";
  before_it(0);
  if (std::strcmp(how, "fork") == 0) {
    for (int i = 1; i <= 3; ++i) run_child(i, i == 1 && count > 2 ? arguments[2] : nullptr);
    std::puts("done");
  } else if (std::strcmp(how, "exec") == 0) {
    execl("/proc/self/exe", arguments[0], "again", nullptr);
  } else if (std::strcmp(how, "again") == 0) {
    before_it(1);
    after_exec(7);
    std::puts("done");
  } else if (std::strcmp(how, "attach") == 0) {
    // Each line that is read: f: a child; x: another program.
    std::printf("ready\n");
    std::fflush(stdout);
    for (int c = std::getchar(); c != EOF; c = std::getchar()) {
      if (c == 'f') run_child(5, nullptr);
      if (c == 'x') execl("/proc/self/exe", arguments[0], "waits", nullptr);
    }
  } else if (std::strcmp(how, "waits") == 0) {
    // Triggers come some time after the exec.
    for (int n = 0; n < 2000; ++n) {
      after_exec(n);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (n == 3) {
        std::printf("waits\n");
        std::fflush(stdout);
      }
    }
  }
}
