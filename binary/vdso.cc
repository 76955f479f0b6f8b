// SPDX-License-Identifier: MIT
#include "binary/vdso.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/descriptor.h"

namespace karst::binary {

bool is_vdso(const std::filesystem::path& module) {
  return module == "[vdso]" || module == "linux-vdso.so.1" || module == "linux-gate.so.1";
}

Result<int> open_vdso() {
  const auto* image = reinterpret_cast<const unsigned char*>(getauxval(AT_SYSINFO_EHDR));  // NOLINT
  if (image == nullptr) return Error{"this system has no vdso"};
  // An image in memory, whose size nobody says: not for ElfFile. The kernel made it, and maps it whole: its section
  // headers are the last thing in it.
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  std::uint64_t size = header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, image + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) size = std::max<std::uint64_t>(size, segment.p_offset + segment.p_filesz);
  }
  Descriptor copy(::memfd_create("karst-vdso", MFD_CLOEXEC));
  if (!copy || ::pwrite(copy.get(), image, size, 0) != static_cast<ssize_t>(size))
    return Error{"no memory for a copy of the vdso"};
  return copy.release();
}

}  // namespace karst::binary
