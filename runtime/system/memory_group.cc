// SPDX-License-Identifier: MIT
// Reads the group's own files, of either version of the kernel's interface. Groups lie in each other: the one with the
// least limit is looked at from then on.
#include "runtime/system/memory_group.h"

#include <fcntl.h>

#include "runtime/system/memory.h"
#include "runtime/system/own_descriptor.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

namespace {

struct Interface {
  const char* line;  ///< before the group's path, in /proc/self/cgroup
  const char* root;
  const char* limit;
  const char* usage;
  const char* inactive;  ///< in memory.stat
  const char* active;
};
constexpr Interface kFirst{":memory:",
                           "/sys/fs/cgroup/memory",
                           "/memory.limit_in_bytes",
                           "/memory.usage_in_bytes",
                           "\ntotal_inactive_file ",
                           "\ntotal_active_file "};
constexpr Interface kSecond{"0::",           "/sys/fs/cgroup", "/memory.max", "/memory.current", "\ninactive_file ",
                            "\nactive_file "};

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;
constexpr std::size_t kLongestPath = 512;
constexpr std::size_t kLongestName = 32;

const Interface* g_interface;
std::uint64_t g_limit = kNoLimit;
// Opened once: a number that is taken for a moment later could be one that another thread of the program counts on.
OwnDescriptor g_usage;
OwnDescriptor g_details;
char g_stat[4096];  // static: the slow path may run on a small stack
std::uint32_t g_stat_busy;

/// The text of a file, with a zero behind it; its size, 0 if it cannot be had.
std::size_t read_text(int fd, char* text, std::size_t room) {
  const long size = sys::call(SYS_pread64, fd, sys::word(text), static_cast<long>(room - 1), 0);
  text[size > 0 ? size : 0] = '\0';
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

/// At start alone.
std::size_t read_file(const char* path, char* text, std::size_t room) {
  const long fd = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const std::size_t size = read_text(static_cast<int>(fd), text, room);
  sys::close(static_cast<int>(fd));
  return size;
}

struct Path {
  Path(const char* group, const char* name) {
    const std::size_t size = length(group);
    copy(text, group, size);
    copy(text + size, name, length(name) + 1);
  }
  char text[kLongestPath + kLongestName];
};

std::uint64_t number_at(const char* p, std::uint64_t otherwise) {
  if (*p < '0' || *p > '9') return otherwise;
  std::uint64_t n = 0;
  for (; *p >= '0' && *p <= '9' && n < kNoLimit; ++p) n = n * 10 + static_cast<std::uint64_t>(*p - '0');
  return n;
}

/// Where the words begin in the text, else null.
const char* find(const char* text, const char* words) {
  for (; *text != '\0'; ++text)
    if (starts_with(text, words)) return text;
  return nullptr;
}

std::uint64_t number_behind(const char* text, const char* words) {
  const char* at = find(text, words);
  return at == nullptr ? 0 : number_at(at + length(words), 0);
}

/// Memory of files that the kernel can drop. 0 while another thread, or an interrupted one, asks.
std::uint64_t droppable() {
  if (!g_details.is_there() || !exchange_if(g_stat_busy, 0U, 1U)) return 0;
  std::uint64_t files = 0;
  if (read_text(g_details.number(), g_stat, sizeof g_stat) != 0)
    files = number_behind(g_stat, g_interface->inactive) + number_behind(g_stat, g_interface->active);
  store(g_stat_busy, 0U);
  return files;
}

}  // namespace

void find_memory_group() {
  if (read_file("/proc/self/cgroup", g_stat, sizeof g_stat) == 0) return;
  g_interface = &kFirst;
  const char* line = find(g_stat, kFirst.line);
  if (line == nullptr) {
    g_interface = &kSecond;
    line = find(g_stat, kSecond.line);
  }
  if (line == nullptr) return;
  line += length(g_interface->line);
  std::size_t own = 0;
  while (line[own] != '\0' && line[own] != '\n') ++own;
  const std::size_t root = length(g_interface->root);
  char path[kLongestPath];
  if (root + own + 1 > sizeof path) return;
  copy(path, g_interface->root, root);
  copy(path + root, line, own);
  // In a container the path may be that of the system outside: then the root is the container's own group.
  for (std::size_t size = root + own; size >= root; --size) {
    if (size != root && size != root + own && path[size] != '/') continue;
    path[size] = '\0';
    char text[32];
    if (read_file(Path(path, g_interface->limit).text, text, sizeof text) == 0) continue;
    const std::uint64_t limit = number_at(text, kNoLimit);
    if (limit >= g_limit) continue;
    g_limit = limit;
    g_usage.close();
    g_usage.take(sys::open(Path(path, g_interface->usage).text, O_RDONLY | O_CLOEXEC));
    g_details.close();
    g_details.take(sys::open(Path(path, "/memory.stat").text, O_RDONLY | O_CLOEXEC));
  }
}

bool memory_group_has_room(std::uint64_t bytes) {
  char text[32];
  // A program that closed all descriptors has what it takes.
  if (g_limit == kNoLimit || !g_usage.is_there() || read_text(g_usage.number(), text, sizeof text) == 0) return true;
  const std::uint64_t used = number_at(text, 0);
  const std::uint64_t allowed = g_limit - g_limit / 8;
  if (used + bytes <= allowed) return true;
  const std::uint64_t files = droppable();
  return used - (files < used ? files : used) + bytes <= allowed;
}

}  // namespace karst::runtime
