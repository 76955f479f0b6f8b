// SPDX-License-Identifier: MIT
// Reading until all of it is there.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace karst::sandbox {

/// Asks may_read() before each read. False: it said no, or the bytes end or cannot be read before `size` are there.
template <typename MayRead>
bool read_whole(int fd, void* into, std::size_t size, MayRead may_read) {
  auto* to = static_cast<std::byte*>(into);
  while (size != 0) {
    if (!may_read()) return false;
    const ssize_t n = ::read(fd, to, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}
inline bool read_whole(int fd, void* into, std::size_t size) {
  return read_whole(fd, into, size, [] { return true; });
}

}  // namespace karst::sandbox
