// Ways to make a process out of a traced one. Prints one line for each process, and what its own counters say.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

extern char** environ;
volatile long g_leaves;
void leaf() { g_leaves = g_leaves + 1; }
void work(int n) {
  for (int i = 0; i < n; ++i) leaf();
}
void say(const char* who) {
  printf("%s %ld\n", who, g_leaves);
  fflush(stdout);
}

// What the child does: much more than its share of any memory.
int child(bool by_exit) {
  g_leaves = 0;
  work(3000000);
  say("child");
  if (by_exit) exit(5);
  _exit(5);
}
int reap(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  char* self = argv[0];
  char* const grandchild[] = {self, const_cast<char*>("leaf"), nullptr};
  work(100);
  int status = 5;
  if (mode == "fork-exit" || mode == "fork-_exit") {
    const pid_t pid = fork();
    if (pid == 0) child(mode == "fork-exit");
    status = reap(pid);
  } else if (mode == "raw-fork") {
    const auto pid = static_cast<pid_t>(syscall(SYS_fork));
    if (pid == 0) child(false);
    status = reap(pid);
  } else if (mode == "threads") {
    // Forks while others are in the middle of hooks and of the slow path.
    std::atomic<bool> done{false};
    std::thread busy[3];
    for (auto& t : busy)
      t = std::thread([&done] {
        for (int i = 0; i < 200000; ++i) leaf();
        while (!done) usleep(1000);
      });
    for (int i = 0; i < 50; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        std::thread more([] { work(20000); });
        more.join();
        work(20000);
        _exit(5);
      }
      status = reap(pid) == 5 ? status : 99;
    }
    done = true;
    for (auto& t : busy) t.join();
  } else if (mode == "vfork-exec") {
    const pid_t pid = vfork();
    if (pid == 0) {
      execv(self, grandchild);
      _exit(1);
    }
    status = reap(pid);
  } else if (mode == "posix_spawn") {
    pid_t pid = 0;
    posix_spawn(&pid, self, nullptr, nullptr, grandchild, environ);
    status = reap(pid);
  } else if (mode == "system") {
    status = WEXITSTATUS(system((std::string(self) + " leaf").c_str()));
  } else if (mode == "outlive") {
    if (fork() == 0) {
      usleep(300000);
      child(true);
    }
  } else if (mode == "outlive-exec") {
    // The parent ends once the other program has said that it runs.
    int ends[2];
    if (pipe(ends) != 0) return 1;
    if (fork() == 0) {
      dup2(ends[1], 9);
      char* const slow[] = {self, const_cast<char*>("slow"), nullptr};
      execv(self, slow);
    }
    char word = 0;
    if (read(ends[0], &word, 1) != 1) return 1;
  } else if (mode == "slow") {
    if (write(9, "x", 1) != 1) return 1;
    usleep(300000);
  } else if (mode == "exec") {
    say("before");
    execv(self, grandchild);
  }
  work(100);
  if (mode != "threads") say(mode == "leaf" || mode == "slow" ? "exec'd" : "parent");
  if (status != 5) printf("child's status %d\n", status);
  return mode == "leaf" ? 5 : 0;
}
