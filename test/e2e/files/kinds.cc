// Descriptors that have no path, and what is done to them. For each it says KIND NUMBER LINK, as /proc/self/fd has it,
// on a descriptor of its own.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

extern "C" int pidfd_open(pid_t, unsigned) noexcept;  // glibc 2.36's header forgets the "C"

#define CALL __attribute__((noinline, noclone))

static void say(const char* kind, int fd) {
  char link[64], where[256] = "", text[400];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, where, sizeof where - 1) < 0) strcpy(where, "none");
  const int size = snprintf(text, sizeof text, "%s %d %s\n", kind, fd, where);
  if (write(1, text, static_cast<size_t>(size)) != size) abort();
}

/// A descriptor that is read from, so that there is a call with its number.
CALL void look_at(int fd) {
  char bytes[300];
  fcntl(fd, F_SETFL, O_NONBLOCK);
  if (read(fd, bytes, sizeof bytes) < -1) abort();
}

int main() {
  sigset_t none;
  sigemptyset(&none);
  const int events = eventfd(3, EFD_NONBLOCK), more = eventfd(1, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const int signals = signalfd(-1, &none, 0), watched = inotify_init1(IN_CLOEXEC), self = pidfd_open(getpid(), 0);
  const int copy = dup(more), memory = memfd_create("some memory", 0), all = epoll_create1(EPOLL_CLOEXEC);
  shm_unlink("/karst-kinds");
  const int shared = shm_open("/karst-kinds", O_RDWR | O_CREAT, 0600);
  FILE* const temporary = tmpfile();
  FILE* const command = popen("echo told", "r");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return 1;
  if (signalfd(signals, &none, 0) != signals) return 1;
  const struct {
    const char* kind;
    int fd;
  } made[] = {{"eventfd", events},
              {"eventfd", more},
              {"timerfd", timer},
              {"signalfd", signals},
              {"inotify", watched},
              {"pidfd", self},
              {"eventfd", copy},
              {"memfd", memory},
              {"epoll", all},
              {"shared", shared},
              {"tmpfile", fileno(temporary)},
              {"popen", fileno(command)},
              {"pipe", ends[0]}};
  for (const auto& one : made) say(one.kind, one.fd);
  for (const auto& one : made)
    if (one.fd != fileno(command)) look_at(one.fd);
  char line[100];
  if (fgets(line, sizeof line, command) == nullptr || strcmp(line, "told\n") != 0) return 1;
  pclose(command);
  fclose(temporary);
  shm_unlink("/karst-kinds");
  // What becomes ready.
  epoll_event event{EPOLLIN, {.fd = ends[0]}};
  epoll_ctl(all, EPOLL_CTL_ADD, ends[0], &event);
  if (write(ends[1], "x", 1) != 1 || epoll_wait(all, &event, 1, -1) != 1 || event.data.fd != ends[0]) return 1;
  epoll_ctl(all, EPOLL_CTL_DEL, ends[0], nullptr);
  eventfd_write(events, 5);
  eventfd_t count = 0;
  if (eventfd_read(events, &count) != 0 || count != 5) return 1;
  // A number that was an eventfd's is another's.
  close(events);
  const int next = open("/dev/null", O_RDONLY);
  if (next != events) return 1;
  look_at(next);
  return 0;
}
