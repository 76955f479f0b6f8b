// SPDX-License-Identifier: MIT
#include "base/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace karst {

Descriptor sealed_memory(const char* name, std::span<const std::byte> bytes) {
  Descriptor fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  for (std::size_t done = 0; fd && done < bytes.size();) {
    const ssize_t n = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n <= 0 && errno != EINTR) return {};
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  if (fd && fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) return {};
  return fd;
}

}  // namespace karst
