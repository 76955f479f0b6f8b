// SPDX-License-Identifier: MIT
// Reads the file piece by piece, as a mapped one that is cut meanwhile would end the program.
#include "runtime/modules/function_names.h"

#include <elf.h>
#include <fcntl.h>

#include <initializer_list>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

constexpr std::uint64_t kMostSymbols = 1 << 24;  // of files that are no linker's work, we do not read more

class File {
 public:
  explicit File(const char* path) : fd_(static_cast<int>(sys::open(path, O_RDONLY | O_CLOEXEC))) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) sys::close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }
  /// Bytes that were read, less only at the file's end.
  std::uint64_t read(std::uint64_t at, void* into, std::uint64_t size) const {
    const long n = sys::call(SYS_pread64, fd_, sys::word(into), static_cast<long>(size), static_cast<long>(at));
    return n > 0 ? static_cast<std::uint64_t>(n) : 0;
  }
  template <typename T>
  bool read(std::uint64_t at, T& value) const {
    return read(at, &value, sizeof value) == sizeof value;
  }

 private:
  int fd_;
};

/// The symbol of a function that has `address` and begins last. Its name's offset in the table of names; 0: none.
std::uint32_t find_symbol(const File& file, const Elf64_Shdr& table, std::uint64_t address) {
  constexpr std::uint64_t kPiece = 64;
  Elf64_Sym symbols[kPiece];
  std::uint64_t begin = 0;
  std::uint32_t name = 0;
  const std::uint64_t count = table.sh_size / sizeof symbols[0];
  for (std::uint64_t first = 0; first < count && first < kMostSymbols; first += kPiece) {
    const std::uint64_t wanted = count - first < kPiece ? count - first : kPiece;
    const std::uint64_t got =
        file.read(table.sh_offset + first * sizeof symbols[0], symbols, wanted * sizeof symbols[0]);
    for (std::uint64_t i = 0; i < got / sizeof symbols[0]; ++i) {
      const Elf64_Sym& s = symbols[i];
      if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx == SHN_UNDEF || s.st_value < begin ||
          address - s.st_value >= s.st_size)
        continue;
      begin = s.st_value;
      name = s.st_name;
    }
    if (got != wanted * sizeof symbols[0]) break;
  }
  return name;
}

}  // namespace

bool find_function_name(const char* path, std::uint64_t address, char* name, std::uint32_t size) {
  const File file(path);
  Elf64_Ehdr header;
  if (!file.is_open() || !file.read(0, header) || header.e_shentsize != sizeof(Elf64_Shdr)) return false;
  for (const std::uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr table;
      Elf64_Shdr names;
      if (!file.read(header.e_shoff + i * sizeof table, table) || table.sh_type != type ||
          table.sh_link >= header.e_shnum || !file.read(header.e_shoff + table.sh_link * sizeof names, names))
        continue;
      const std::uint32_t at = find_symbol(file, table, address);
      if (at == 0 || at >= names.sh_size) continue;
      const std::uint64_t got = file.read(names.sh_offset + at, name, size - 1);
      name[got] = '\0';
      return name[0] != '\0';
    }
  }
  return false;
}

}  // namespace karst::runtime
