// Makes processes in many ways. Each process, on its way out, says in one line what it did by its own account:
//
//   PID PARENT LEAVES inside FRAME...       frames: the functions it was inside when it was forked, outermost first
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#define QUIET __attribute__((no_instrument_function, noinline))

namespace {

// The program's own account. A function that is inside() says so between IN and OUT.
thread_local const char* t_stack[256];
thread_local int t_depth;
long g_leaves;
long g_in_handler;  // leaves of a forked child before fork() returned
char g_inside[4096];
pid_t g_parent;

#define IN t_stack[t_depth++] = __func__;
#define OUT --t_depth;

QUIET void in_child(pid_t parent) {
  g_leaves = g_in_handler;
  g_parent = parent;
  g_inside[0] = 0;
  for (int i = 0; i < t_depth; ++i) strcat(strcat(g_inside, " "), t_stack[i]);
}

QUIET void tell() {
  char line[8192];
  const int n = snprintf(line, sizeof line, "%d %d %ld inside%s\n", getpid(), g_parent, g_leaves, g_inside);
  if (write(STDOUT_FILENO, line, n) != n) abort();
}

QUIET pid_t fork_now() {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) in_child(parent);
  return pid;
}

QUIET void reap() {
  while (wait(nullptr) > 0 || errno == EINTR) {
  }
}

[[noreturn]] QUIET void leave() {
  tell();
  _exit(0);
}

}  // namespace

void leaf() { __atomic_add_fetch(&g_leaves, 1, __ATOMIC_RELAXED); }
void work(int n) {
  IN for (int i = 0; i < n; ++i) leaf();
  OUT
}

// Parent and child both return through all of it.
void inner(int n) {
  IN work(3);
  const pid_t pid = fork_now();
  work(pid == 0 ? n : 1);
  OUT
}
void outer(int n) {
  IN inner(n);
  work(2);
  OUT
}

void in_thread() {
  IN outer(20);
  OUT
}

void on_signal(int) {
  IN outer(30);
  OUT
}

int cloned(void* n) {
  IN work(*static_cast<int*>(n));
  OUT leave();
}

void generations(int n) {
  IN work(n);
  if (n != 0 && fork_now() == 0) {
    generations(n - 1);
    reap();
    leave();
  }
  OUT
}

void burst(int n) {
  IN for (int i = 0; i < n; ++i) {
    if (fork_now() == 0) {
      work(i);
      leave();
    }
  }
  OUT
}

void many_threads(int threads, int forks) {
  IN std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([forks] {
      for (int i = 0; i < forks; ++i) {
        work(50);
        if (fork_now() == 0) {
          std::thread more(work, 10);
          work(i);
          more.join();
          leave();
        }
      }
    });
  for (auto& t : all) t.join();
  OUT
}

void before_fork() { work(1); }
void after_fork() { work(2); }
void in_forked() {
  work(4);
  g_in_handler = 4;
}

// As daemons do it: two forks, and all descriptors closed but those that are needed.
void become_daemon() {
  IN if (fork_now() != 0) leave();
  setsid();
  if (fork_now() != 0) _exit(0);  // says nothing, has done nothing
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  OUT
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int n = argc > 2 ? atoi(argv[2]) : 0;
  IN work(4);
  if (mode == "fork") {
    outer(10);
  } else if (mode == "thread") {
    std::thread(in_thread).join();
  } else if (mode == "signal") {
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
  } else if (mode == "clone") {
    static char stack[1 << 16];
    int work_for = 15;
    clone(
        [](void* p) {
          t_depth = 0;
          in_child(getppid());
          return cloned(p);
        },
        stack + sizeof stack, SIGCHLD, &work_for);
  } else if (mode == "raw") {
    const pid_t parent = getpid();
    if (syscall(SYS_fork) == 0) {
      in_child(parent);
      work(12);
      leave();
    }
  } else if (mode == "generations") {
    generations(n);
  } else if (mode == "burst") {
    burst(n);
  } else if (mode == "many-threads") {
    many_threads(8, n);
  } else if (mode == "atfork") {
    pthread_atfork(before_fork, after_fork, in_forked);
    outer(10);
  } else if (mode == "daemon") {
    become_daemon();
    work(25);
    usleep(200000);
    work(25);
  } else if (mode == "late") {
    // The child makes its first call when its parent is long gone.
    if (fork_now() == 0) {
      usleep(400000);
      work(9);
    }
  } else if (mode == "alive") {
    // The child lives on until its input ends; its parent ends once it has worked.
    int ends[2];
    char c = 'x';
    if (pipe(ends) != 0) abort();
    if (fork_now() == 0) {
      work(6);
      if (write(ends[1], &c, 1) != 1) abort();
      close(STDOUT_FILENO);
      close(STDERR_FILENO);
      if (read(STDIN_FILENO, &c, 1) < 0) abort();
      _exit(0);
    }
    if (read(ends[0], &c, 1) != 1) abort();
    leave();
  } else if (mode == "exec") {
    if (fork_now() == 0) {
      work(5);
      tell();
      execl(argv[0], argv[0], "again", nullptr);
    }
  } else if (mode == "killed") {
    for (int i = 0; i < n; ++i) {
      const pid_t pid = fork_now();
      if (pid == 0)
        for (;;) work(1000);
      if (i % 2 != 0) usleep(i * 37 % 700);
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  } else if (mode == "no-descriptors") {
    if (fork_now() == 0) {
      const rlimit none{0, 0};
      setrlimit(RLIMIT_NOFILE, &none);
      work(8);
      leave();
    }
  } else if (mode == "named") {
    if (fork_now() == 0) {
      prctl(PR_SET_NAME, "worker-7");
      work(8);
      tell();
      exit(0);
    }
  }
  reap();
  OUT tell();
  return 0;
}
