// SPDX-License-Identifier: MIT
// A line is written only if it disturbs nobody. Descriptor 2 may be a program's own file by now, a pipe that nobody
// reads, or one whose reader has gone: then the line is dropped, and counted.
#include "runtime/system/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "runtime/system/forked.h"
#include "runtime/system/memory.h"
#include "runtime/system/own_process.h"
#include "runtime/system/syscalls.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

namespace karst::runtime {
namespace {

constexpr int kStderr = 2;

bool g_kept;  // else whatever descriptor 2 is will do
bool g_there;
struct stat g_stderr;
std::uint64_t g_dropped;
std::uint64_t* g_told_dropped;

bool look_at(int number, struct stat& status) { return sys::call(SYS_fstat, number, sys::word(&status)) == 0; }

/// A write to a pipe without a reader, or beyond the limit on files' size, raises a signal in the calling thread, whose
/// signals are blocked: it is taken back, unless the program had one waiting already.
class SignalTakenBack {
 public:
  explicit SignalTakenBack(int number) : bit_(std::uint64_t{1} << (number - 1)) {
    std::uint64_t waiting = 0;
    sys::call(SYS_rt_sigpending, sys::word(&waiting), sizeof waiting);
    programs_ = (waiting & bit_) != 0;
  }
  ~SignalTakenBack() {
    constexpr struct timespec kNoTime {};
    if (!programs_) sys::call(SYS_rt_sigtimedwait, sys::word(&bit_), 0, sys::word(&kNoTime), sizeof bit_);
  }
  SignalTakenBack(const SignalTakenBack&) = delete;
  SignalTakenBack& operator=(const SignalTakenBack&) = delete;

 private:
  std::uint64_t bit_;
  bool programs_;
};

/// Descriptor 2 of the program, from a process of ours, which has none: opened anew for a line. Not so with sockets.
class Borrowed {
 public:
  Borrowed() {
    if (!is_own_process()) return;
    char path[64];
    number_ = programs_proc("fd/2", path, sizeof path)
                  ? static_cast<int>(sys::open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))
                  : -1;
    ours_ = true;
  }
  ~Borrowed() {
    if (ours_ && number_ >= 0) sys::close(number_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  int number() const { return number_; }

 private:
  int number_ = kStderr;
  bool ours_ = false;
};

bool write_line(const char* line, std::uint32_t size) {
  const Borrowed to;
  struct stat status {};
  if (!look_at(to.number(), status)) return false;
  if (g_kept && (!g_there || status.st_dev != g_stderr.st_dev || status.st_ino != g_stderr.st_ino)) return false;
  const sys::SignalsBlocked guard;
  if (S_ISSOCK(status.st_mode))
    return sys::call(SYS_sendto, to.number(), sys::word(line), size, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
  constexpr struct timespec kNoTime {};
  pollfd ready{to.number(), POLLOUT, 0};
  // Where the program may have no descriptors at all (RLIMIT_NOFILE of 0), nothing can be asked.
  const long asked = sys::call(SYS_ppoll, sys::word(&ready), 1, sys::word(&kNoTime), 0, 0);
  if (asked != -EINVAL && (asked != 1 || ready.revents != POLLOUT)) return false;
  const SignalTakenBack no_reader(SIGPIPE);
  const SignalTakenBack too_large(SIGXFSZ);
  long written = -EOPNOTSUPP;
  const iovec part{const_cast<char*>(line), size};
  // Between the question and the writing others may have filled the pipe.
  if (S_ISFIFO(status.st_mode)) written = sys::call(SYS_pwritev2, to.number(), sys::word(&part), 1, -1, -1, RWF_NOWAIT);
  if (written == -EOPNOTSUPP || written == -ENOSYS) written = sys::write(to.number(), line, size);
  return written > 0;
}

}  // namespace

void keep_stderr() {
  g_there = look_at(kStderr, g_stderr);
  g_kept = true;
}

void tell_dropped_messages(std::uint64_t& count) { g_told_dropped = &count; }

Message::Message() { text("karst: "); }

Message::~Message() {
  line_[size_++] = '\n';
  if (write_line(line_, size_)) return;
  const std::uint64_t dropped = __atomic_add_fetch(&g_dropped, 1, __ATOMIC_RELAXED);
  if (g_told_dropped != nullptr && !in_forked_child()) store(*g_told_dropped, dropped);
}

Message& Message::text(const char* s) {
  while (*s != '\0' && size_ < sizeof line_ - 1) line_[size_++] = *s++;
  return *this;
}

Message& Message::text(const char* s, std::uint64_t n) {
  // What we quote (options, paths) is not ours: keep the terminal safe.
  for (; n != 0 && size_ < sizeof line_ - 1; --n, ++s) line_[size_++] = (*s < ' ' || *s == 127) ? '?' : *s;
  return *this;
}

Message& Message::hex(std::uint64_t n) {
  int shift = 60;
  while (shift > 0 && n >> shift == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) text(&"0123456789abcdef"[n >> shift & 15], 1);
  return *this;
}

Message& Message::number(std::uint64_t n) {
  char digits[20];
  unsigned count = 0;
  do digits[count++] = static_cast<char>('0' + n % 10);
  while ((n /= 10) != 0);
  while (count != 0 && size_ < sizeof line_ - 1) line_[size_++] = digits[--count];
  return *this;
}

}  // namespace karst::runtime
