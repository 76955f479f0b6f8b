#include "binary/plain_sections.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace karst::binary {
namespace {

constexpr std::uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, younger than Debian 12's elf.h
/// Of all sections of a file, decompressed.
constexpr std::uint64_t kMaxSize = std::uint64_t{4} << 30;

struct Unmap {
  std::size_t size;
  void operator()(const std::byte* bytes) const { ::munmap(const_cast<std::byte*>(bytes), size); }
};

bool read_at(int fd, void* to, std::size_t size, std::uint64_t offset) {
  return ::pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

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

/// Section headers of a little-endian 64-bit ELF file; empty for anything else, which libelf will judge.
std::vector<Elf64_Shdr> section_headers(int fd, std::uint64_t file_size, Elf64_Ehdr& header) {
  if (!read_at(fd, &header, sizeof header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff == 0 || header.e_shoff > file_size) {
    return {};
  }
  std::uint64_t count = header.e_shnum;
  if (count == 0) {  // 65280 and more: section 0 has the number
    Elf64_Shdr first;
    if (!read_at(fd, &first, sizeof first, header.e_shoff)) return {};
    count = first.sh_size;
  }
  if (count > (file_size - header.e_shoff) / sizeof(Elf64_Shdr)) return {};
  std::vector<Elf64_Shdr> headers(count);
  if (!read_at(fd, headers.data(), count * sizeof(Elf64_Shdr), header.e_shoff)) return {};
  return headers;
}

bool is_zstd(int fd, const Elf64_Shdr& section, std::uint64_t file_size, Elf64_Chdr& compression) {
  return (section.sh_flags & SHF_COMPRESSED) != 0 && section.sh_type != SHT_NOBITS &&
         section.sh_size >= sizeof compression && section.sh_offset <= file_size &&
         section.sh_size <= file_size - section.sh_offset &&
         read_at(fd, &compression, sizeof compression, section.sh_offset) && compression.ch_type == kZstd;
}

/// Decompresses one section to the end of the copy, and points its header there.
Status expand(int copy, std::span<const std::byte> file, const Elf64_Chdr& compression, std::uint64_t& end,
              Elf64_Shdr& section) {
  if (compression.ch_size > kMaxSize - end) return Error{"its debug sections take more than 4 GiB"};
  const std::span<const std::byte> packed =
      file.subspan(section.sh_offset + sizeof(Elf64_Chdr), section.sh_size - sizeof(Elf64_Chdr));
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
  struct stat status {};
  if (::fstat(fd, &status) != 0 || status.st_size <= 0) return original.release();
  const auto file_size = static_cast<std::uint64_t>(status.st_size);
  Elf64_Ehdr header;
  std::vector<Elf64_Shdr> sections = section_headers(fd, file_size, header);
  Descriptor copy;
  std::uint64_t end = file_size;
  std::unique_ptr<const std::byte, Unmap> file(nullptr, {file_size});
  for (Elf64_Shdr& section : sections) {
    Elf64_Chdr compression;
    if (!is_zstd(fd, section, file_size, compression)) continue;
    if (!copy) {
      copy = Descriptor(::memfd_create("karst-symbols", MFD_CLOEXEC));
      if (!copy) return Error{std::string("no memory for its debug sections: ") + std::strerror(errno)};
      void* mapped = ::mmap(nullptr, file_size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (mapped == MAP_FAILED) return Error{std::string("it cannot be read: ") + std::strerror(errno)};
      file.reset(static_cast<const std::byte*>(mapped));
      if (!write_at(copy.get(), file.get(), file_size, 0)) return Error{"no memory for its debug sections"};
    }
    if (Status done = expand(copy.get(), {file.get(), file_size}, compression, end, section); !done)
      return done.error();
  }
  if (!copy) return original.release();
  if (!write_at(copy.get(), reinterpret_cast<const std::byte*>(sections.data()), sections.size() * sizeof(Elf64_Shdr),
                header.e_shoff)) {
    return Error{"no memory for its debug sections"};
  }
  return copy.release();
}

}  // namespace karst::binary
