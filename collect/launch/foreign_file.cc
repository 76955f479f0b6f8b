// SPDX-License-Identifier: MIT
#include "collect/launch/foreign_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "collect/arena/bytes.h"
#include "sandbox/sandbox.h"

namespace karst::collect {
namespace {

/// Asks no file system's server (FUSE, NFS), which may not answer: what the kernel knows by itself is enough.
bool look_at(int fd, struct statx& status) {
  return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &status) == 0;
}

}  // namespace

Descriptor open_regular_file(const std::string& path) {
  const int fd = sandbox::open_regular(path.c_str());
  if (fd < 0) errno = -fd;
  return Descriptor(fd);
}

Descriptor open_memfd(const std::string& path, int flags) {
  const Descriptor held(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct statx status {};
  if (!held || !look_at(held.get(), status)) return {};
  // All memfds lie in one file system of the kernel's own, in which nobody can make anything else.
  const Descriptor own(memfd_create("karst-probe", MFD_CLOEXEC));
  struct statx like {};
  if (!own || !look_at(own.get(), like)) return {};
  if (S_ISREG(status.stx_mode) && status.stx_dev_major == like.stx_dev_major &&
      status.stx_dev_minor == like.stx_dev_minor)
    return Descriptor(
        open(("/proc/self/fd/" + std::to_string(held.get())).c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  errno = EINVAL;
  return {};
}

Descriptor open_arena_file(const std::string& path, unsigned major, unsigned minor, std::uint64_t inode) {
  const Descriptor held(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct statx status {};
  if (!held || !look_at(held.get(), status)) return {};
  if (status.stx_dev_major == major && status.stx_dev_minor == minor && status.stx_ino == inode &&
      may_be_arena_file(held.get()))
    return Descriptor(
        open(("/proc/self/fd/" + std::to_string(held.get())).c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  errno = EINVAL;
  return {};
}

}  // namespace karst::collect
