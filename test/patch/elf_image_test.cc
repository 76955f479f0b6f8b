// Files made to keep a reader busy: tables over each other, names without an end. What is asked of one takes time in
// proportion to its size.
#include "patch/elf_image.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "base/descriptor.h"

namespace karst::patch {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFileSize = 16 << 20;
constexpr std::size_t kTables = 0x800000;

class HostileElf : public testing::Test {
 protected:
  HostileElf() : bytes_(kFileSize, std::byte{'a'}) {
    std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
    header_.e_ident[EI_CLASS] = ELFCLASS64;
    header_.e_machine = EM_X86_64;
    header_.e_type = ET_DYN;
    header_.e_phentsize = sizeof(Elf64_Phdr);
    header_.e_shentsize = sizeof(Elf64_Shdr);
    header_.e_phoff = 0x1000;
    header_.e_shoff = kTables;
    segment(PT_LOAD, PF_R | PF_X, 0, kFileSize);
  }
  void segment(std::uint32_t type, std::uint32_t flags, std::uint64_t offset, std::uint64_t size) {
    put(header_.e_phoff + header_.e_phnum++ * sizeof(Elf64_Phdr),
        Elf64_Phdr{type, flags, offset, offset, offset, size, size, 8});
  }
  void section(std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
    put(header_.e_shoff + header_.e_shnum++ * sizeof(Elf64_Shdr),
        Elf64_Shdr{0, type, 0, offset, offset, size, 0, 0, 8, sizeof(Elf64_Sym)});
  }
  template <typename T>
  void put(std::uint64_t at, const T& value) {
    std::memcpy(&bytes_[at], &value, sizeof value);
  }
  Result<ElfImage> read() {
    put(0, header_);
    const Descriptor file(memfd_create("elf", MFD_CLOEXEC));
    EXPECT_EQ(write(file.get(), bytes_.data(), bytes_.size()), static_cast<ssize_t>(bytes_.size()));
    return ElfImage::read(file.get());
  }
  /// All that walks over tables, in time: what is not bounded takes hours.
  void ask() {
    const auto begin = std::chrono::steady_clock::now();
    const auto image = read();
    if (image) {
      EXPECT_LE(image->functions().size(), kFileSize / sizeof(Elf64_Sym));
      EXPECT_LE(image->cold_symbols().size(), kFileSize / sizeof(Elf64_Sym));
      EXPECT_LE(image->code_pointers().size(), kFileSize);
      EXPECT_LE(image->needed().size(), 4096U);
      static_cast<void>(image->build_id());
      static_cast<void>(image->contents(".none"));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s);
  }

  std::vector<std::byte> bytes_;
  Elf64_Ehdr header_{};
};

TEST_F(HostileElf, ThousandsOfSegmentsAreNoProgram) {
  for (int i = 0; i < 60'000; ++i) segment(PT_LOAD, PF_R, 0, kFileSize);
  EXPECT_FALSE(read());
}

TEST_F(HostileElf, SegmentsOverEachOtherAreNoProgram) {
  for (int i = 0; i < 200; ++i) segment(PT_LOAD, PF_R, 0, kFileSize);
  EXPECT_FALSE(read());
}

TEST_F(HostileElf, SymbolTablesOverEachOtherAreReadOnce) {
  Elf64_Sym symbol{};
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_shndx = 1;
  symbol.st_value = 0x2000;
  symbol.st_name = 1;  // of megabytes: nothing ends it
  for (std::size_t at = kTables - (4 << 20); at + sizeof symbol <= kTables; at += sizeof symbol) put(at, symbol);
  section(SHT_STRTAB, kTables + (6 << 20), 2 << 20);
  for (int i = 0; i < 60'000; ++i) section(SHT_SYMTAB, kTables - (4 << 20), 4 << 20);
  ask();
}

TEST_F(HostileElf, NotesOfNoSizeAndEndlessListsEnd) {
  segment(PT_NOTE, PF_R, 0x100000, 4 << 20);
  for (int i = 0; i < 200; ++i) segment(PT_NOTE, PF_R, 0x100000, 4 << 20);
  std::memset(&bytes_[0x100000], 0, 4 << 20);
  segment(PT_DYNAMIC, PF_R, 0x600000, 1 << 20);
  for (std::size_t at = 0x600000; at + sizeof(Elf64_Dyn) <= 0x700000; at += sizeof(Elf64_Dyn))
    put(at, Elf64_Dyn{DT_NEEDED, {0xa00000}});
  put(0x600000, Elf64_Dyn{DT_STRTAB, {1}});
  ask();
}

}  // namespace
}  // namespace karst::patch
