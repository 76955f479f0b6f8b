// SPDX-License-Identifier: MIT
// The file of an executable or library as the dynamic linker maps it: bytes by ELF address, and what it relocates.
// Hostile input: every place is compared with the file before it is read. Runs in the sandbox (sandbox/sandbox.h).
//
// It goes by program headers, as the dynamic linker does. libelf refuses a file whose table of sections is damaged, so
// this is not binary/elf_file.h.
#pragma once
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/pages.h"
#include "base/result.h"

namespace karst::patch {

/// ELF addresses [begin, end).
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool contains(std::uint64_t address) const { return address >= begin && address < end; }
};

class ElfImage {
 public:
  /// Reads the whole file. The descriptor stays the caller's. Errors: not a whole x86-64 program or library.
  static Result<ElfImage> read(int descriptor);

  /// The file.
  std::span<const std::byte> whole() const { return bytes_; }
  /// Its addresses are those in memory: it is not position-independent.
  bool is_fixed() const { return is_fixed_; }
  /// Where the program begins, which nothing calls; 0: it does not.
  std::uint64_t entry() const { return entry_; }
  /// Executable segments, in order of address.
  const std::vector<Range>& code() const { return code_; }
  bool is_code(std::uint64_t address) const;
  /// The address of the byte at `offset` of the file; 0: it is of no code.
  std::uint64_t address_at(std::uint64_t offset) const;
  /// Bytes of the file from `address` to the end of its segment; empty where the file has none.
  std::span<const std::byte> from(std::uint64_t address) const;
  /// A little-endian number of 4 or 8 bytes, sign-extended; none where the file has none.
  std::optional<std::int64_t> number(std::uint64_t address, unsigned size) const;

  /// Where the table of frames begins (PT_GNU_EH_FRAME's); none: it has no such table.
  std::optional<std::uint64_t> frames() const;
  /// The same by its section, for programs that are linked statically: they have no PT_GNU_EH_FRAME.
  std::optional<std::uint64_t> frames_of_section() const;
  struct CodePointer {
    std::uint64_t at = 0;
    std::uint64_t to = 0;  ///< 0: a symbol's address, known at load time, so that of no place within a function
  };
  /// Each word of data that is, or becomes at load time, the address of code: pointers to functions, tables of labels.
  /// Of a relocation with a symbol there are two: the symbol's address, and what is added to it.
  std::vector<CodePointer> code_pointers() const;
  /// Where the global offset table begins, from which code of -mcmodel=large counts; 0: not known.
  std::uint64_t global_offset_table() const;
  /// Addresses of the symbols that name code, as far as the file has some.
  std::vector<std::uint64_t> code_symbols() const;
  /// Symbols of parts of functions that a compiler split off (name.cold and the like).
  std::vector<std::uint64_t> cold_symbols() const;
  struct NamedCode {
    std::uint64_t address = 0;
    std::string_view name;  ///< a linker's, which lies in whole()
  };
  /// Functions by their symbols, each name of one. What a resolver of IFUNC gives back is not known here.
  std::vector<NamedCode> functions() const;
  /// The same of dynamic symbols alone: what other modules can call by name.
  std::vector<NamedCode> exported_functions() const;
  /// Addresses of functions that have a name which is not the module's own affair.
  std::vector<std::uint64_t> global_functions() const;
  /// Words that get the addresses of other modules' symbols when it is loaded.
  struct Import {
    std::uint64_t address = 0;
    std::string_view name;
    bool is_glibcs = false;  ///< by the version that it asks for: a function of glibc or libstdc++, as they have it
  };
  std::vector<Import> imported() const;
  /// Names of the libraries that it asks for when it is loaded.
  std::vector<std::string_view> needed() const;
  /// It has restartable sequences (__rseq_cs), whose code must stay where it is.
  bool has_restartable_sequences() const;
  /// Empty: it has none.
  std::span<const std::byte> build_id() const;
  /// Bytes of the section of that name; empty: it has none.
  std::span<const std::byte> contents(const char* section) const;
  /// Where that section lies; 0: it has none.
  std::uint64_t section_address(const char* section) const;
  /// [address, address + size) lies in data that the program may write to.
  bool is_writable(std::uint64_t address, std::uint64_t size) const;

 private:
  std::span<const std::byte> bytes_at(std::uint64_t offset, std::uint64_t size) const;
  const Elf64_Shdr* section(const char* name) const;
  /// Numbers of versions of symbols that are glibc's or libstdc++'s, in order.
  std::vector<std::uint16_t> versions_of_glibc() const;
  /// The first entry of that kind of the dynamic section; 0: it has none.
  std::uint64_t dynamic(std::int64_t tag) const;
  /// visit(address, name, type, whether it is a dynamic symbol, whether it is local)
  template <typename Visit>
  void for_each_symbol(Visit visit) const;

  struct GiveBack {
    std::size_t size;
    void operator()(std::byte* memory) const { pages::give_back(memory, size); }
  };
  // Not a vector, which would write zeros to all of it first.
  std::unique_ptr<std::byte[], GiveBack> memory_{nullptr, GiveBack{0}};
  std::span<const std::byte> bytes_;  // all of memory_
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Range> code_;
  std::uint16_t names_ = 0;  // the section of sections' names
  std::uint64_t entry_ = 0;
  bool is_fixed_ = false;  // its addresses are those in memory (not position-independent)
};

}  // namespace karst::patch
