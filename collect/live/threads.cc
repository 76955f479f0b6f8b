// SPDX-License-Identifier: MIT
#include "collect/live/threads.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

#include "collect/inject/memory.h"

namespace karst::collect {
namespace {

std::string first_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

/// "NUMBER ARG0 ... ARG5 SP PC", "running", or "-1 SP PC"; nothing where we may not look.
void read_syscall(const std::string& text, LiveThread& thread) {
  std::istringstream words(text);
  if (!(words >> thread.syscall)) {
    thread.syscall = -1;
    return;
  }
  for (std::uint64_t& argument : thread.arguments) {
    std::string word;
    words >> word;
    if (word.starts_with("0x")) std::from_chars(word.data() + 2, word.data() + word.size(), argument, 16);
  }
}

/// glibc's pthread_mutex_t: the word that is waited for (2: held, and others wait), a count, the holder's tid.
pid_t holder_of(const Result<ForeignMemory>& memory, const LiveThread& thread, const std::vector<LiveThread>& all) {
  if (thread.syscall != SYS_futex) return 0;
  const auto operation = static_cast<int>(thread.arguments[1]) & FUTEX_CMD_MASK;
  if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) return 0;
  using Mutex = std::array<std::uint32_t, 3>;
  const auto mutex = memory ? memory->get<Mutex>(thread.arguments[0]) : std::nullopt;
  if (!mutex || (*mutex)[0] != 2) return 0;
  const auto owner = static_cast<pid_t>((*mutex)[2]);
  const bool is_one = std::any_of(all.begin(), all.end(), [owner](const LiveThread& t) { return t.tid == owner; });
  return is_one ? owner : 0;
}

}  // namespace

std::vector<LiveThread> live_threads(const HeldProcess& process) {
  std::vector<LiveThread> all;
  for (const pid_t tid : process.threads()) {
    LiveThread thread;
    thread.tid = tid;
    thread.name = first_line(process.path(tid, "comm"));
    thread.state = process.state(tid);
    if (thread.state == '?') continue;  // it has ended meanwhile
    read_syscall(first_line(process.path(tid, "syscall")), thread);
    all.push_back(std::move(thread));
  }
  std::sort(all.begin(), all.end(), [](const LiveThread& a, const LiveThread& b) { return a.tid < b.tid; });
  const auto memory = ForeignMemory::open(process);
  for (LiveThread& thread : all) thread.holder = holder_of(memory, thread, all);
  return all;
}

}  // namespace karst::collect
