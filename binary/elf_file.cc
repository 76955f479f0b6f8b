// SPDX-License-Identifier: MIT
#include "binary/elf_file.h"

namespace karst::binary {
namespace {

ElfHandle open_elf(int descriptor, ElfAccess access) {
  elf_version(EV_CURRENT);
  return ElfHandle(descriptor < 0
                       ? nullptr
                       : elf_begin(descriptor, access == ElfAccess::kMap ? ELF_C_READ_MMAP : ELF_C_READ, nullptr));
}

}  // namespace

ElfFile::ElfFile(Descriptor file, ElfAccess access) : file_(std::move(file)), elf_(open_elf(file_.get(), access)) {}

ElfFile ElfFile::borrowing(int descriptor, ElfAccess access) { return ElfFile(open_elf(descriptor, access)); }

ElfFile ElfFile::in_memory(std::span<const std::byte> bytes) {
  elf_version(EV_CURRENT);
  // It reads alone, whatever it asks for.
  return ElfFile(ElfHandle(elf_memory(reinterpret_cast<char*>(const_cast<std::byte*>(bytes.data())), bytes.size())));
}

ElfFile ElfFile::of(Elf* elf) { return ElfFile(ElfHandle(elf, EndElf{false})); }

std::optional<GElf_Ehdr> ElfFile::header() const {
  GElf_Ehdr header;
  if (gelf_getehdr(elf_.get(), &header) == nullptr) return std::nullopt;
  return header;
}

bool ElfFile::is_x86_64() const {
  const auto h = header();
  return h && h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == EM_X86_64;
}

unsigned ElfFile::type() const {
  const auto h = header();
  return h ? h->e_type : ET_NONE;
}

std::vector<GElf_Phdr> ElfFile::segments(std::size_t most) const {
  std::vector<GElf_Phdr> all;
  std::size_t count = 0;
  if (elf_getphdrnum(elf_.get(), &count) != 0) return all;
  for (std::size_t i = 0; i < std::min(count, most); ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf_.get(), static_cast<int>(i), &segment) != nullptr) all.push_back(segment);
  }
  return all;
}

std::vector<ElfSection> ElfFile::sections() const {
  std::vector<ElfSection> all;
  if (!is_elf()) return all;
  std::size_t names = 0;
  const bool has_names = elf_getshdrstrndx(elf_.get(), &names) == 0;
  for (Elf_Scn* at = nullptr; (at = elf_nextscn(elf_.get(), at)) != nullptr;) {
    ElfSection section{at, {}, {}};
    if (gelf_getshdr(at, &section.header) == nullptr) continue;
    const char* const name = has_names ? elf_strptr(elf_.get(), names, section.header.sh_name) : nullptr;
    if (name != nullptr) section.name = name;
    all.push_back(section);
  }
  return all;
}

std::span<const std::byte> ElfFile::contents(const ElfSection& section) const {
  if (section.header.sh_type == SHT_NOBITS) return {};
  const Elf_Data* const data = elf_rawdata(section.handle, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const std::byte*>(data->d_buf), data->d_size};
}

std::span<const std::byte> ElfFile::whole() const {
  std::size_t size = 0;
  const char* const bytes = elf_rawfile(elf_.get(), &size);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(bytes), size};
}

Elf_Data* ElfFile::chunk(std::uint64_t offset, std::uint64_t size, Elf_Type type) const {
  return elf_getdata_rawchunk(elf_.get(), static_cast<std::int64_t>(offset), size, type);
}

std::string_view ElfFile::text(std::uint64_t offset, std::uint64_t size) const {
  const Elf_Data* const data = chunk(offset, size, ELF_T_BYTE);
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

}  // namespace karst::binary
