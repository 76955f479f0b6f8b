// Ways out of a call that are no return: cancellation, pthread_exit() in a handler, a jump out of a handler; each from
// calls that wait. What happens is printed, and is the same traced and untraced.
#include "../locks/ways_out.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

int g_empty, g_full, g_server, g_datagrams, g_watched;
FILE* g_stream;
pid_t g_child;
char g_bytes[8192];
const timespec kLong{1000, 0};

#define WAIT(text, call)                                   \
  {                                                        \
    text, [] { [[maybe_unused]] const auto given = call; } \
  }
iovec part() { return {g_bytes, 1}; }
int wait_for(int which) {
  pollfd all{g_empty, POLLIN, 0};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(g_empty, &set);
  switch (which) {
    case 0:
      return poll(&all, 1, -1);
    case 1:
      return ppoll(&all, 1, &kLong, nullptr);
    case 2:
      return select(g_empty + 1, &set, nullptr, nullptr, nullptr);
    default:
      return pselect(g_empty + 1, &set, nullptr, nullptr, &kLong, nullptr);
  }
}
ssize_t gather(bool write) {
  const iovec one = part();
  return write ? writev(g_full, &one, 1) : readv(g_empty, &one, 1);
}
int wait_for_events() {
  epoll_event event;
  return epoll_wait(g_watched, &event, 1, -1);
}
const Function kFunctions[] = {
    WAIT("read", read(g_empty, g_bytes, 1)),
    WAIT("readv", gather(false)),
    WAIT("write", write(g_full, g_bytes, sizeof g_bytes)),
    WAIT("writev", gather(true)),
    WAIT("open", open("fifo", O_RDONLY)),
    WAIT("poll", wait_for(0)),
    WAIT("ppoll", wait_for(1)),
    WAIT("select", wait_for(2)),
    WAIT("pselect", wait_for(3)),
    WAIT("epoll_wait", wait_for_events()),
    WAIT("accept", accept(g_server, nullptr, nullptr)),
    WAIT("recv", recv(g_datagrams, g_bytes, 1, 0)),
    WAIT("recvfrom", recvfrom(g_datagrams, g_bytes, 1, 0, nullptr, nullptr)),
    WAIT("nanosleep", nanosleep(&kLong, nullptr)),
    WAIT("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &kLong, nullptr)),
    WAIT("sleep", sleep(1000)),
    WAIT("usleep", usleep(900'000'000)),
    WAIT("waitpid", waitpid(g_child, nullptr, 0)),
    WAIT("fgets", fgets(g_bytes, sizeof g_bytes, g_stream)),
    WAIT("fread", fread(g_bytes, 1, 1, g_stream)),
};

void nothing() {}

void try_way(const Function& function, Way way) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  g_stream = fdopen(ends[0], "r");
  printf("%s, %s\n", function.name, kWays[way]);
  const pthread_t thread = begin_waiter<nothing>(function, way);
  if (way != kCancelPending) {
    await_waiter();
    send_away(thread);
  }
  join_waiter(thread);
}

}  // namespace

int main() {
  int empty[2], full[2], datagrams[2];
  mkfifo("fifo", 0600);
  if (pipe(empty) != 0 || pipe(full) != 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) != 0) return 2;
  g_empty = empty[0];
  g_full = full[1];
  g_datagrams = datagrams[0];
  fcntl(g_full, F_SETFL, O_NONBLOCK);
  while (write(g_full, g_bytes, sizeof g_bytes) > 0) continue;
  fcntl(g_full, F_SETFL, 0);
  g_server = socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr any{AF_UNIX, {}};
  if (bind(g_server, &any, sizeof any.sa_family) != 0 || listen(g_server, 1) != 0) return 2;
  g_watched = epoll_create1(0);
  g_child = fork();
  if (g_child == 0) {
    pause();
    _exit(0);
  }
  handle_signals();
  for (const Function& function : kFunctions)
    for (const Way way : {kCancelPending, kCancelled, kExitsInHandler, kJumps}) try_way(function, way);
  kill(g_child, SIGKILL);
  int status = 0;
  printf("%d\n", waitpid(g_child, &status, 0) == g_child);
}
