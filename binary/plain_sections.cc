// SPDX-License-Identifier: MIT
#include "binary/plain_sections.h"

#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "base/descriptor.h"
#include "binary/elf_file.h"

namespace karst::binary {
namespace {

constexpr std::uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, younger than Debian 12's elf.h
/// Of all sections of a file, decompressed.
constexpr std::uint64_t kMaxSize = std::uint64_t{4} << 30;

bool write_at(int fd, const std::byte* from, std::size_t size, std::uint64_t offset) {
  while (size != 0) {
    const ssize_t n = ::pwrite(fd, from, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n;
    size -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}

/// How the section is compressed; none: not by zstd.
std::optional<Elf64_Chdr> zstd_of(const ElfFile& file, const ElfSection& section) {
  if ((section.header.sh_flags & SHF_COMPRESSED) == 0) return std::nullopt;
  const auto bytes = file.contents(section);
  Elf64_Chdr compression;
  if (bytes.size() < sizeof compression) return std::nullopt;
  std::memcpy(&compression, bytes.data(), sizeof compression);
  return compression.ch_type == kZstd ? std::optional(compression) : std::nullopt;
}

/// Decompresses one section to the end of the copy, and points its header there.
Status expand(int copy, std::span<const std::byte> packed, const Elf64_Chdr& compression, std::uint64_t& end,
              GElf_Shdr& section) {
  if (end > kMaxSize || compression.ch_size > kMaxSize - end) return Error{"its debug sections take more than 4 GiB"};
  // zstd's own greatest ratio, so that a small file cannot ask for much. Linkers write several frames: mold does.
  if (compression.ch_size / 32768 > packed.size()) return Error{"a section compressed with zstd is damaged"};
  const std::unique_ptr<std::byte[]> plain(new (std::nothrow) std::byte[compression.ch_size]);
  if (plain == nullptr) return Error{"no memory for its debug sections"};
  const std::size_t n = ZSTD_decompress(plain.get(), compression.ch_size, packed.data(), packed.size());
  if (ZSTD_isError(n) != 0 || n != compression.ch_size) return Error{"a section compressed with zstd is damaged"};
  const std::uint64_t align = compression.ch_addralign > 4096 ? 4096 : compression.ch_addralign;
  end = (end + 15) / 16 * 16;
  if (!write_at(copy, plain.get(), n, end)) return Error{"no memory for its debug sections"};
  section.sh_flags &= ~static_cast<std::uint64_t>(SHF_COMPRESSED);
  section.sh_offset = end;
  section.sh_size = n;
  section.sh_addralign = align == 0 ? 1 : align;
  end += n;
  return Unit{};
}

}  // namespace

Result<int> with_plain_sections(int fd) {
  Descriptor original(fd);
  const auto file = ElfFile::borrowing(fd, ElfAccess::kMap);
  if (!file.is_x86_64()) return original.release();
  const std::span<const std::byte> whole = file.whole();
  Descriptor copy;
  std::uint64_t end = whole.size();
  for (ElfSection& section : file.sections()) {
    const auto compression = zstd_of(file, section);
    if (!compression) continue;
    if (!copy) {
      copy = Descriptor(::memfd_create("karst-symbols", MFD_CLOEXEC));
      if (!copy) return Error{std::string("no memory for its debug sections: ") + std::strerror(errno)};
      if (!write_at(copy.get(), whole.data(), whole.size(), 0)) return Error{"no memory for its debug sections"};
    }
    const auto packed = file.contents(section).subspan(sizeof *compression);
    if (Status done = expand(copy.get(), packed, *compression, end, section.header); !done) return done.error();
    const std::uint64_t at = file.header()->e_shoff + elf_ndxscn(section.handle) * sizeof section.header;
    if (!write_at(copy.get(), reinterpret_cast<const std::byte*>(&section.header), sizeof section.header, at))
      return Error{"no memory for its debug sections"};
  }
  return copy ? copy.release() : original.release();
}

}  // namespace karst::binary
