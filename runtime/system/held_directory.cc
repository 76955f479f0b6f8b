// SPDX-License-Identifier: MIT
#include "runtime/system/held_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

constexpr std::size_t kLongest = 4096;
constexpr int kMostLinks = 40;  // the kernel's own bound

bool is_trusted(uid_t user) { return user == 0 || user == static_cast<uid_t>(sys::call(SYS_geteuid)); }

/// As base/output_place.cc has it.
bool may_follow(const struct stat& directory, const struct stat& link) {
  if (!is_trusted(link.st_uid) || !is_trusted(directory.st_uid)) return false;
  if ((directory.st_mode & (S_IWGRP | S_IWOTH)) == 0) return true;
  if (link.st_uid != 0) return true;  // our own, and we are not root
  return (directory.st_mode & S_ISVTX) != 0 && link.st_nlink == 1;
}

long open_at(long directory, const char* name, int flags) {
  return sys::call(SYS_openat, directory, sys::word(name), O_PATH | O_CLOEXEC | flags, 0);
}

long look_at(long descriptor, struct stat& status) {
  return sys::call(SYS_newfstatat, descriptor, sys::word(""), sys::word(&status), AT_EMPTY_PATH);
}

/// Follows `way`, of kLongest bytes and changed meanwhile, from the root or from here; `text` has as many.
long follow(char* way, char* text) {
  long directory = open_at(AT_FDCWD, *way == '/' ? "/" : ".", O_DIRECTORY);
  int links = 0;
  for (char* part = way; directory >= 0;) {
    while (*part == '/') ++part;
    if (*part == '\0') return directory;
    char* end = part;
    while (*end != '\0' && *end != '/') ++end;
    const char behind = *end;
    *end = '\0';
    const long next = open_at(directory, part, O_NOFOLLOW);
    *end = behind;
    struct stat there {};
    struct stat here {};
    long error = next < 0 ? next : look_at(next, there);
    if (error == 0 && S_ISLNK(there.st_mode)) {
      error = look_at(directory, here);
      if (error == 0 && (++links > kMostLinks || !may_follow(here, there))) error = -ELOOP;
      const long size = error == 0 ? sys::call(SYS_readlinkat, next, sys::word(""), sys::word(text), kLongest) : error;
      sys::close(static_cast<int>(next));
      const std::size_t rest = length(end);
      if (size > 0 && static_cast<std::size_t>(size) + rest >= kLongest) error = -ENAMETOOLONG;
      if (size <= 0 || error != 0) {
        sys::close(static_cast<int>(directory));
        return size < 0 ? size : error != 0 ? error : -ENOENT;
      }
      copy(text + size, end, rest + 1);
      copy(way, text, static_cast<std::size_t>(size) + rest + 1);
      part = way;
      if (*way != '/') continue;
      sys::close(static_cast<int>(directory));
      directory = open_at(AT_FDCWD, "/", O_DIRECTORY);
      continue;
    }
    sys::close(static_cast<int>(directory));
    directory = error == 0 ? next : error;
    if (error != 0 && next >= 0) sys::close(static_cast<int>(next));
    part = end;
  }
  return directory;
}

}  // namespace

const char* HeldDirectory::name_in(const char* path) {
  const char* name = path;
  for (const char* p = path; *p != '\0'; ++p)
    if (*p == '/') name = p + 1;
  return name;
}

HeldDirectory::HeldDirectory(const char* path) : number_(-ENOMEM) {
  const auto size = static_cast<std::size_t>(name_in(path) - path);
  if (size >= kLongest) {
    number_ = -ENAMETOOLONG;
    return;
  }
  const long got = sys::mmap(0, 2 * kLongest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(got)) return;
  char* const way = reinterpret_cast<char*>(got);
  copy(way, path, size);
  number_ = static_cast<int>(follow(way, way + kLongest));
  sys::munmap(way, 2 * kLongest);
}

HeldDirectory::~HeldDirectory() {
  if (number_ >= 0) sys::close(number_);
}

}  // namespace karst::runtime
