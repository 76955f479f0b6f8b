// SPDX-License-Identifier: MIT
// An ELF file that is open for reading: the one opener of tools, over libelf. It owns what libelf made, and the
// descriptor.
//
// Files are hostile. libelf compares each place with the file's size; how many segments and notes are looked at is
// bounded here. What others than tools read stays apart: the runtime has no libelf (runtime/modules/module_image.h),
// another process's memory is no file (collect/inject/memory.h), and libelf refuses files that the dynamic linker takes
// (patch/elf_image.h).
#pragma once
#include <gelf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace karst::binary {

struct EndElf {
  bool is_ours = true;
  void operator()(Elf* elf) const {
    if (is_ours) elf_end(elf);
  }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

struct ElfSection {
  Elf_Scn* handle = nullptr;
  GElf_Shdr header{};
  std::string_view name;  ///< empty: it has none, or the file's names cannot be read
};

struct ElfNote {
  std::uint32_t type = 0;
  std::string_view name;  ///< with its zero, if it has one
  std::string_view content;
};

enum class ElfAccess {
  kRead,  ///< as far as it is asked for
  kMap,   ///< all of it: quicker. Who cuts the file meanwhile ends the process, so for the sandbox
};

/// Views that it gives live as long as it, and stay where they are when it is moved. One thread at a time.
class ElfFile {
 public:
  /// Real programs and libraries have some ten.
  static constexpr std::size_t kMostSegments = 256;

  /// Not open.
  ElfFile() = default;
  explicit ElfFile(Descriptor file, ElfAccess access = ElfAccess::kRead);
  /// The descriptor stays the caller's, and open.
  static ElfFile borrowing(int descriptor, ElfAccess access = ElfAccess::kRead);
  /// Bytes of a whole file, which must outlive it.
  static ElfFile in_memory(std::span<const std::byte> bytes);
  /// What libdwfl has opened, which must outlive it.
  static ElfFile of(Elf* elf);

  /// Null: not open. Of what is no ELF file libelf knows that alone.
  Elf* get() const { return elf_.get(); }
  /// False: not open, or something else (an archive among others). The rest then finds nothing.
  bool is_elf() const { return elf_ != nullptr && elf_kind(elf_.get()) == ELF_K_ELF; }
  std::optional<GElf_Ehdr> header() const;
  /// Of 64 bits; no x32.
  bool is_x86_64() const;
  /// Like ET_DYN; ET_NONE: it is no ELF file.
  unsigned type() const;

  std::vector<GElf_Phdr> segments(std::size_t most = kMostSegments) const;
  /// All but the first, which is none.
  std::vector<ElfSection> sections() const;
  /// The section's bytes as they stand in the file; empty: it has none there.
  std::span<const std::byte> contents(const ElfSection& section) const;
  /// The file.
  std::span<const std::byte> whole() const;
  /// Of the file, as libelf converts `type`. Null: not all of it is there.
  Elf_Data* chunk(std::uint64_t offset, std::uint64_t size, Elf_Type type) const;
  /// The same of plain bytes.
  std::string_view text(std::uint64_t offset, std::uint64_t size) const;

  /// Calls visit(note) for each note of a segment of type PT_NOTE, in order. mold puts notes aligned to 4 and to 8
  /// bytes into one segment of alignment 8; those met in practice can be stepped through by 4, as the runtime does.
  template <typename Visit>
  void for_each_note(const GElf_Phdr& segment, std::uint64_t most_bytes, Visit visit) const {
    Elf_Data* const data = chunk(segment.p_offset, std::min<std::uint64_t>(segment.p_filesz, most_bytes), ELF_T_NHDR);
    if (data == nullptr) return;
    const char* const bytes = static_cast<const char*>(data->d_buf);
    GElf_Nhdr note;
    std::size_t name = 0;
    std::size_t content = 0;
    for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &content)) != 0;)
      visit(ElfNote{note.n_type, {bytes + name, note.n_namesz}, {bytes + content, note.n_descsz}});
  }

 private:
  explicit ElfFile(ElfHandle elf) : elf_(std::move(elf)) {}
  Descriptor file_;  // libelf reads by it until elf_ has ended
  ElfHandle elf_;
};

}  // namespace karst::binary
