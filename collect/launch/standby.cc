// SPDX-License-Identifier: MIT
#include "collect/launch/standby.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <utility>

namespace karst::collect {
namespace {

std::atomic<int> g_word{-1};

/// True: this process's maker has died.
bool wait_for_word(int fd) {
  char word = 0;
  ssize_t n = 0;
  do n = ::read(fd, &word, 1);
  while (n < 0 && errno == EINTR);
  return n == 0;
}

/// It may have had its word, and be gone, when a second signal interrupts what a first one does.
bool give_word(int fd) {
  ssize_t n = 0;
  do n = ::send(fd, "", 1, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n == 1 || errno == EPIPE;
}

}  // namespace

Standby::Standby(const std::function<void()>& instead) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  process_ = ::fork();
  if (process_ == 0) {
    ::close(ends[1]);
    // What ends karst by the terminal is not for this one: karst says what becomes of it.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) ::signal(signal, SIG_IGN);
    if (wait_for_word(ends[0])) {
      try {
        instead();
      } catch (const std::exception&) {
        ::_exit(1);  // out of memory: there is no third one
      }
    }
    ::_exit(0);
  }
  ::close(ends[0]);
  if (process_ < 0) {
    ::close(ends[1]);
    return;
  }
  word_ = ends[1];
  g_word = word_;
}

void Standby::dismiss() {
  if (word_ < 0) return;
  g_word = -1;
  // What does not get the word would take our place.
  if (!give_word(word_)) ::kill(process_, SIGKILL);
  ::close(std::exchange(word_, -1));
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Standby::dismiss_now() {
  if (const int word = g_word; word >= 0) static_cast<void>(give_word(word));
}

}  // namespace karst::collect
