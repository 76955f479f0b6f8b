// SPDX-License-Identifier: MIT
#include "runtime/system/own_program.h"

#include <fcntl.h>
#include <sys/stat.h>
#ifndef KARST_STATIC
#include <link.h>
#include <sys/auxv.h>
#endif

#include <cstdint>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

#ifndef KARST_STATIC
extern "C" {
#pragma weak _r_debug  // of the dynamic linker; libkarst needs no library but libc
}
#endif

namespace karst::runtime {

namespace {

#ifndef KARST_STATIC
/// An address in the program, if the kernel started the dynamic linker alone (it has told of no other); 0: it did not.
std::uintptr_t address_in_loaded() {
  if (getauxval(AT_BASE) != 0 || &_r_debug == nullptr || _r_debug.r_map == nullptr) return 0;
  return reinterpret_cast<std::uintptr_t>(_r_debug.r_map->l_ld);
}

std::uintptr_t parse_hexadecimal(const char*& text) {
  std::uintptr_t value = 0;
  for (;; ++text) {
    const char c = *text;
    if (c >= '0' && c <= '9')
      value = value * 16 + static_cast<unsigned>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value * 16 + static_cast<unsigned>(c - 'a') + 10;
    else
      return value;
  }
}

/// The file that is mapped at `address`, by the lines of /proc/self/maps. Of longer ones than `line` holds the rest is
/// passed over. Not by base/process_maps.h: a guest takes no memory and calls nothing but the system.
std::size_t file_at(std::uintptr_t address, char* buffer, std::size_t size) {
  const long file = sys::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char part[1024];
  char line[4200];
  std::size_t used = 0;
  std::size_t found = 0;
  long n = 0;
  while (found == 0 && (n = sys::read(static_cast<int>(file), part, sizeof part)) > 0) {
    for (long i = 0; i < n && found == 0; ++i) {
      if (part[i] != '\n') {
        if (used + 1 < sizeof line) line[used++] = part[i];
        continue;
      }
      line[used] = '\0';
      used = 0;
      const char* at = line;
      const std::uintptr_t begin = parse_hexadecimal(at);
      if (*at++ != '-') continue;
      if (address < begin || address >= parse_hexadecimal(at)) continue;
      while (*at != '\0' && *at != '/') ++at;
      const std::size_t path_size = length(at);
      if (path_size == 0 || path_size >= size) break;
      copy(buffer, at, path_size + 1);
      found = path_size;
    }
  }
  sys::close(static_cast<int>(file));
  return found;
}
#endif

constexpr const char* kLink = "/proc/thread-self/exe";

/// The kernel adds this to the path of a file that is not there any more. A file may really be called so.
std::size_t without_mark(char* path, std::size_t size) {
  constexpr char kDeleted[] = " (deleted)";
  constexpr std::size_t kMark = sizeof kDeleted - 1;
  struct stat status {};
  if (size <= kMark || !equal(path + size - kMark, kDeleted) ||
      sys::call(SYS_newfstatat, AT_FDCWD, sys::word(path), sys::word(&status), 0) == 0)
    return size;
  path[size - kMark] = '\0';
  return size - kMark;
}

}  // namespace

std::size_t own_program(char* buffer, std::size_t size) {
#ifndef KARST_STATIC
  if (const std::uintptr_t address = address_in_loaded(); address != 0)
    if (const std::size_t found = file_at(address, buffer, size); found != 0) return without_mark(buffer, found);
#endif
  const long n = sys::call(SYS_readlinkat, -100, sys::word(kLink), sys::word(buffer), static_cast<long>(size - 1));
  const std::size_t found = n > 0 ? static_cast<std::size_t>(n) : 0;
  buffer[found] = '\0';
  return without_mark(buffer, found);
}

const char* link_to_own_program(char* buffer, std::size_t size) {
#ifndef KARST_STATIC
  if (const std::uintptr_t address = address_in_loaded(); address != 0 && file_at(address, buffer, size) != 0)
    return buffer;
#else
  static_cast<void>(buffer);
  static_cast<void>(size);
#endif
  return kLink;
}

long open_own_program() {
#ifndef KARST_STATIC
  if (const std::uintptr_t address = address_in_loaded(); address != 0) {
    char path[4096];
    if (file_at(address, path, sizeof path) != 0) return sys::open(path, O_RDONLY | O_CLOEXEC);
  }
#endif
  // Not by its name: another file may be there by now.
  return sys::open(kLink, O_RDONLY | O_CLOEXEC);
}

}  // namespace karst::runtime
