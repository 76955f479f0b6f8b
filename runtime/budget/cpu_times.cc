// SPDX-License-Identifier: MIT
#include "runtime/budget/cpu_times.h"

#include <fcntl.h>

#include "runtime/clock/clock.h"
#include "runtime/system/own_process.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

constexpr std::uint32_t kMostKept = 200;  // files: a process may have a thousand, and opening one takes 3 us

std::uint32_t g_reader;
std::uint32_t g_kept;
bool g_there;  // /proc is

void look_at_reader() {
  const auto self = static_cast<std::uint32_t>(sys::getpid());
  if (g_reader == self) return;
  g_reader = self;
  g_kept = 0;
  char path[64];
  g_there = programs_proc("task", path, sizeof path);
}

int open_times(std::uint32_t tid) {
  char rest[48] = "task/";
  unsigned size = 5;
  char digits[10];
  unsigned count = 0;
  for (std::uint32_t v = tid; v != 0 || count == 0; v /= 10) digits[count++] = static_cast<char>('0' + v % 10);
  while (count != 0) rest[size++] = digits[--count];
  for (const char* p = "/schedstat"; *p != '\0'; ++p) rest[size++] = *p;
  rest[size] = '\0';
  char path[80];
  if (!programs_proc(rest, path, sizeof path)) return -1;
  return static_cast<int>(sys::open(path, O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::uint64_t process_cpu_time() {
  // clock_getcpuclockid()'s number.
  return clock_ns(static_cast<int>(~programs_pid() << 3 | 2));
}

std::uint64_t ThreadCpuTime::read(std::uint32_t tid) {
  look_at_reader();
  if (!g_there) return 0;
  if (tid_ != tid || reader_ != g_reader) close();
  if (file_ < 0) {
    file_ = open_times(tid);
    if (file_ < 0) return 0;
    ++g_kept;
    reader_ = g_reader;
    tid_ = tid;
  }
  char text[64];
  const long size = sys::call(SYS_pread64, file_, sys::word(text), sizeof text, 0);
  std::uint64_t ns = 0;
  for (long i = 0; i < size && text[i] >= '0' && text[i] <= '9'; ++i)
    ns = ns * 10 + static_cast<unsigned>(text[i] - '0');
  if (g_kept > kMostKept) close();
  return ns;
}

void ThreadCpuTime::close() {
  if (file_ >= 0 && reader_ != 0 && reader_ == g_reader) {
    sys::close(file_);
    --g_kept;
  }
  file_ = -1;
  tid_ = reader_ = 0;
}

}  // namespace karst::runtime
