// Does what it reads: the process that peers.py's attackers would like to look into. With an argument: one call more.
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "karst/karst.h"

namespace {

volatile long g_sum;

__attribute__((noinline)) void leaf(long i) { g_sum = g_sum + i; }

__attribute__((noinline)) void work(long n) {
  for (long i = 0; i < n; ++i) leaf(i);
}

/// What a child ends with, its traced calls made.
int child_status(bool executes, char** arguments) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (executes) {
      execl("/proc/self/exe", arguments[0], "once", nullptr);
      _exit(127);
    }
    work(100);
    _exit(7);
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    work(100);
    return 5;
  }
  char line[512];
  std::printf("ready\n");
  std::fflush(stdout);
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    const std::string what(line);
    if (what == "work\n") {
      work(1000);
      std::printf("worked\n");
    } else if (what == "fork\n" || what == "exec\n") {
      std::printf("%d\n", child_status(what == "exec\n", argv));
    } else if (what == "threads\n") {
      for (int i = 0; i < 4; ++i) std::thread(work, 20000).join();
      std::printf("0\n");
    } else if (what == "name\n") {
      static std::string s_name;
      s_name += "a longer name ";
      karst_thread_set_name(s_name.c_str());
      std::printf("0\n");
    } else if (what.rfind("save ", 0) == 0) {
      std::printf("%d\n", karst_snapshot_save(what.substr(5, what.size() - 6).c_str(), 0));
    } else if (what == "drop\n") {
      std::printf("%d\n", setresgid(65534, 65534, 65534) + setresuid(65534, 65534, 65534));
    } else {
      break;
    }
    std::fflush(stdout);
  }
  return 3;
}
