// While it is switched off and on from outside: libraries come and go in two threads, another forks children that call
// and end, a timer's handler makes calls, and threads are born and die. Until standard input ends or has a 'q'. With
// "finale" behind the libraries: then 1000 calls of finale().
#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> g_stop{false};
std::atomic<int> g_wrong{0};

[[gnu::noinline]] int step(int n) {
  asm volatile("" : "+r"(n));
  return n + 1;
}

[[gnu::noinline]] int deep(int n) { return n == 0 ? step(0) : deep(n - 1) + 1; }

[[gnu::noinline]] void on_timer(int) { step(1); }

[[gnu::noinline]] void visit(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto* const run = library == nullptr ? nullptr : reinterpret_cast<int (*)(int)>(dlsym(library, "plugin_run"));
  if (run == nullptr) {
    ++g_wrong;
    return;
  }
  static const int s_result = run(3);
  if (run(3) != s_result) ++g_wrong;
  dlclose(library);
}

void visits(const char* path) {
  while (!g_stop) visit(path);
}

void forks() {
  while (!g_stop) {
    const pid_t child = fork();
    if (child == 0) _exit(deep(20) == 21 ? 7 : 8);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) ++g_wrong;
  }
}

void births() {
  while (!g_stop)
    std::thread([] {
      if (deep(30) != 31) ++g_wrong;
    }).join();
}

void thrower(int n) {
  if (n == 0) throw std::runtime_error("out");
  thrower(n - 1);
  asm volatile("");
}

void throws() {
  while (!g_stop) {
    try {
      thrower(10);
      ++g_wrong;
    } catch (const std::runtime_error&) {
    }
  }
}

[[gnu::noinline]] int finale(int n) { return step(n); }

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = on_timer;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  bool with_finale = false;
  std::vector<std::thread> threads;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "finale")
      with_finale = true;
    else
      threads.emplace_back(visits, argv[i]);
  }
  threads.emplace_back(forks);
  threads.emplace_back(births);
  threads.emplace_back(throws);
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  while (read(0, &byte, 1) == 1 && byte != 'q') {
  }
  g_stop = true;
  for (std::thread& t : threads) t.join();
  for (int i = 0; with_finale && i < 1000; ++i) finale(i);
  std::puts(g_wrong == 0 ? "right" : "wrong");
  return g_wrong == 0 ? 0 : 1;
}
