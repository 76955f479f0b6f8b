#include "collect/live/threads.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

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
pid_t holder_of(pid_t pid, const LiveThread& thread, const std::vector<LiveThread>& all) {
  if (thread.syscall != SYS_futex) return 0;
  const auto operation = static_cast<int>(thread.arguments[1]) & FUTEX_CMD_MASK;
  if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) return 0;
  std::uint32_t mutex[3] = {};
  iovec to{mutex, sizeof mutex};
  iovec from{reinterpret_cast<void*>(thread.arguments[0]), sizeof mutex};
  if (process_vm_readv(pid, &to, 1, &from, 1, 0) != sizeof mutex || mutex[0] != 2) return 0;
  const auto owner = static_cast<pid_t>(mutex[2]);
  const bool is_one = std::any_of(all.begin(), all.end(), [owner](const LiveThread& t) { return t.tid == owner; });
  return is_one ? owner : 0;
}

}  // namespace

std::vector<LiveThread> live_threads(pid_t pid) {
  std::vector<LiveThread> all;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::error_code error;
  for (std::filesystem::directory_iterator at(tasks, error), end; !error && at != end; at.increment(error)) {
    LiveThread thread;
    const std::string tid = at->path().filename().string();
    std::from_chars(tid.data(), tid.data() + tid.size(), thread.tid);
    thread.name = first_line(at->path().string() + "/comm");
    const std::string stat = first_line(at->path().string() + "/stat");
    const auto behind_name = stat.rfind(") ");
    if (behind_name == std::string::npos || behind_name + 2 >= stat.size()) continue;  // it has ended meanwhile
    thread.state = stat[behind_name + 2];
    read_syscall(first_line(at->path().string() + "/syscall"), thread);
    all.push_back(std::move(thread));
  }
  // As the runtime names them (runtime/system/own_thread.h).
  std::erase_if(all, [](const LiveThread& t) { return t.name == "karst" || t.name == "karst-clock"; });
  std::sort(all.begin(), all.end(), [](const LiveThread& a, const LiveThread& b) { return a.tid < b.tid; });
  for (LiveThread& thread : all) thread.holder = holder_of(pid, thread, all);
  return all;
}

}  // namespace karst::collect
