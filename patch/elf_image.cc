// SPDX-License-Identifier: MIT
#include "patch/elf_image.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace karst::patch {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
// Segments and tables may lie over each other, thousands of times. What is looked at stays in proportion to the file.
constexpr std::size_t kMostSegments = 256;
constexpr std::size_t kMostName = 16 << 10;
constexpr unsigned kMostNotes = 10'000;  // of all segments
constexpr std::size_t kMostNeeded = 4096;

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Names that GCC and LLVM give to what they split off a function; the last two with -fbasic-block-sections.
bool is_cold_name(std::string_view name) {
  const auto has = [name](std::string_view suffix) {
    const auto dot = name.find(suffix);
    return dot != std::string_view::npos && dot != 0;
  };
  return has(".cold") || has(".__part.") || name.ends_with(".eh");
}

}  // namespace

std::span<const std::byte> ElfImage::bytes_at(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
  return bytes_.subspan(offset, size);
}

Result<ElfImage> ElfImage::read(int descriptor) {
  ElfImage image;
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return Error{"it is no regular file"};
  if (static_cast<std::uint64_t>(status.st_size) > kMostBytes) return Error{"it is larger than 1 GiB"};
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return Error{"it is no x86-64 program or library, or is damaged"};
  image.memory_ = {static_cast<std::byte*>(pages::take(size)), GiveBack{size}};
  if (image.memory_ == nullptr) return Error{"there is no memory for it"};
  image.bytes_ = {image.memory_.get(), size};
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = pread(descriptor, image.memory_.get() + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error{"it cannot be read"};
    done += static_cast<std::size_t>(n);
  }
  const Error no_program{"it is no x86-64 program or library, or is damaged"};
  if (image.bytes_.size() < sizeof(Elf64_Ehdr)) return no_program;
  const auto header = load<Elf64_Ehdr>(image.bytes_.data());
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != EM_X86_64 || (header.e_type != ET_EXEC && header.e_type != ET_DYN) ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return no_program;
  image.is_fixed_ = header.e_type == ET_EXEC;
  image.entry_ = header.e_entry;
  const auto table = image.bytes_at(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  if (table.empty() || header.e_phnum > kMostSegments) return no_program;
  std::uint64_t mapped = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = load<Elf64_Phdr>(table.data() + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD &&
        (segment.p_offset > image.bytes_.size() || segment.p_filesz > image.bytes_.size() - segment.p_offset ||
         segment.p_filesz > segment.p_memsz || segment.p_vaddr + segment.p_memsz < segment.p_vaddr))
      return no_program;
    if (segment.p_type == PT_LOAD) mapped += segment.p_filesz;
    image.segments_.push_back(segment);
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      image.code_.push_back({segment.p_vaddr, segment.p_vaddr + segment.p_filesz});
  }
  if (mapped / 4 > image.bytes_.size()) return no_program;
  // Sections are a help where a file has them: nothing depends on them.
  if (header.e_shentsize == sizeof(Elf64_Shdr)) {
    const auto sections = image.bytes_at(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
    for (std::size_t i = 0; i * sizeof(Elf64_Shdr) < sections.size(); ++i)
      image.sections_.push_back(load<Elf64_Shdr>(sections.data() + i * sizeof(Elf64_Shdr)));
    image.names_ = header.e_shstrndx;
  }
  return image;
}

bool ElfImage::is_code(std::uint64_t address) const {
  return std::any_of(code_.begin(), code_.end(), [=](const Range& r) { return r.contains(address); });
}

std::uint64_t ElfImage::address_at(std::uint64_t offset) const {
  for (const Elf64_Phdr& s : segments_)
    if (s.p_type == PT_LOAD && (s.p_flags & PF_X) != 0 && offset >= s.p_offset && offset - s.p_offset < s.p_filesz)
      return s.p_vaddr + (offset - s.p_offset);
  return 0;
}

std::span<const std::byte> ElfImage::from(std::uint64_t address) const {
  for (const Elf64_Phdr& s : segments_)
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
      return bytes_at(s.p_offset + (address - s.p_vaddr), s.p_filesz - (address - s.p_vaddr));
  return {};
}

std::optional<std::int64_t> ElfImage::number(std::uint64_t address, unsigned size) const {
  const auto bytes = from(address);
  if (bytes.size() < size) return std::nullopt;
  return size == 4 ? std::int64_t{load<std::int32_t>(bytes.data())} : load<std::int64_t>(bytes.data());
}

std::optional<std::uint64_t> ElfImage::frames() const {
  // The header: version 1, how the pointer to the frames is encoded, two more encodings, the pointer.
  constexpr unsigned char kRelativeToHere = 0x1b;  // DW_EH_PE_pcrel | DW_EH_PE_sdata4
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type != PT_GNU_EH_FRAME) continue;
    const auto bytes = from(s.p_vaddr);
    if (bytes.size() < 8 || bytes[0] != std::byte{1} || bytes[1] != std::byte{kRelativeToHere}) return std::nullopt;
    return s.p_vaddr + 4 + static_cast<std::uint64_t>(std::int64_t{load<std::int32_t>(bytes.data() + 4)});
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ElfImage::frames_of_section() const {
  const Elf64_Shdr* const frames = section(".eh_frame");
  if (frames == nullptr || frames->sh_type == SHT_NOBITS) return std::nullopt;
  return frames->sh_addr;
}

std::uint64_t ElfImage::dynamic(std::int64_t tag) const {
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type != PT_DYNAMIC) continue;
    const auto bytes = from(s.p_vaddr);
    for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= bytes.size(); at += sizeof(Elf64_Dyn)) {
      const auto entry = load<Elf64_Dyn>(bytes.data() + at);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == tag) return entry.d_un.d_val;
    }
  }
  return 0;
}

std::vector<ElfImage::CodePointer> ElfImage::code_pointers() const {
  std::vector<CodePointer> found;
  const auto see = [&](std::uint64_t at, std::uint64_t address) {
    if (is_code(address)) found.push_back({at, address});
  };
  const std::uint64_t relocations = dynamic(DT_RELA);
  const std::uint64_t size = dynamic(DT_RELASZ);
  // As they stand in the file: all there is of a program at a fixed address, whose constants may lie beside its code,
  // and of RELR's relocations. The table of the others has addresses as well, which are those read below.
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type != PT_LOAD || ((s.p_flags & PF_X) != 0 && !is_fixed_)) continue;
    const auto bytes = from(s.p_vaddr);
    for (std::size_t at = (8 - s.p_vaddr % 8) % 8; at + 8 <= bytes.size(); at += 8)
      if (s.p_vaddr + at - relocations >= size) see(s.p_vaddr + at, load<std::uint64_t>(bytes.data() + at));
  }
  const auto table = from(relocations);
  for (std::size_t at = 0; relocations != 0 && at + sizeof(Elf64_Rela) <= std::min<std::uint64_t>(size, table.size());
       at += sizeof(Elf64_Rela)) {
    const auto r = load<Elf64_Rela>(table.data() + at);
    see(r.r_offset, static_cast<std::uint64_t>(r.r_addend));  // with a symbol an offset from that: no address, no harm
    if (ELF64_R_SYM(r.r_info) != 0) found.push_back({r.r_offset, 0});
  }
  return found;
}

std::uint64_t ElfImage::global_offset_table() const {
  if (const std::uint64_t address = dynamic(DT_PLTGOT); address != 0) return address;
  const std::uint64_t address = section_address(".got.plt");
  return address != 0 ? address : section_address(".got");
}

const Elf64_Shdr* ElfImage::section(const char* name) const {
  if (names_ >= sections_.size()) return nullptr;
  const auto names = bytes_at(sections_[names_].sh_offset, sections_[names_].sh_size);
  const std::size_t size = std::strlen(name) + 1;
  for (const Elf64_Shdr& s : sections_)
    if (s.sh_name < names.size() && names.size() - s.sh_name >= size &&
        std::memcmp(names.data() + s.sh_name, name, size) == 0)
      return &s;
  return nullptr;
}

template <typename Visit>
void ElfImage::for_each_symbol(Visit visit) const {
  std::uint64_t most = bytes_.size();
  std::uint64_t most_text = 4 * most;
  for (const Elf64_Shdr& s : sections_) {
    if ((s.sh_type != SHT_SYMTAB && s.sh_type != SHT_DYNSYM) || s.sh_link >= sections_.size()) continue;
    const auto table = bytes_at(s.sh_offset, s.sh_size);
    if (table.size() > most) return;
    most -= table.size();
    const auto names = bytes_at(sections_[s.sh_link].sh_offset, sections_[s.sh_link].sh_size);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = load<Elf64_Sym>(table.data() + at);
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (type != STT_NOTYPE && type != STT_FUNC && type != STT_GNU_IFUNC) continue;
      if (symbol.st_shndx == SHN_UNDEF || !is_code(symbol.st_value)) continue;
      std::string_view name;
      if (symbol.st_name < names.size()) {
        const auto* text = reinterpret_cast<const char*>(names.data()) + symbol.st_name;
        name = {text, strnlen(text, std::min<std::uint64_t>({names.size() - symbol.st_name, kMostName, most_text}))};
        most_text -= name.size();
      }
      visit(symbol.st_value, name, type, s.sh_type == SHT_DYNSYM, ELF64_ST_BIND(symbol.st_info) == STB_LOCAL);
    }
  }
}

std::vector<std::uint64_t> ElfImage::code_symbols() const {
  std::vector<std::uint64_t> found;
  for_each_symbol([&](std::uint64_t address, std::string_view, unsigned, bool, bool) { found.push_back(address); });
  return found;
}

std::vector<std::uint64_t> ElfImage::cold_symbols() const {
  std::vector<std::uint64_t> found;
  for_each_symbol([&](std::uint64_t address, std::string_view name, unsigned, bool, bool) {
    if (is_cold_name(name)) found.push_back(address);
  });
  return found;
}

std::vector<ElfImage::NamedCode> ElfImage::functions() const {
  std::vector<NamedCode> found;
  for_each_symbol([&](std::uint64_t address, std::string_view name, unsigned type, bool, bool) {
    if (type == STT_FUNC && !name.empty() && !is_cold_name(name)) found.push_back({address, name});
  });
  return found;
}

std::vector<ElfImage::NamedCode> ElfImage::exported_functions() const {
  std::vector<NamedCode> found;
  for_each_symbol([&](std::uint64_t address, std::string_view name, unsigned type, bool is_dynamic, bool) {
    if (is_dynamic && type == STT_FUNC && !name.empty()) found.push_back({address, name});
  });
  return found;
}

std::vector<std::uint64_t> ElfImage::global_functions() const {
  std::vector<std::uint64_t> found;
  for_each_symbol([&](std::uint64_t address, std::string_view, unsigned, bool is_dynamic, bool is_local) {
    if (is_dynamic || !is_local) found.push_back(address);
  });
  return found;
}

std::vector<std::uint16_t> ElfImage::versions_of_glibc() const {
  constexpr std::size_t kMostVersions = 4096;
  const auto table = from(dynamic(DT_VERNEED));
  const auto names = from(dynamic(DT_STRTAB));
  const std::string_view texts(reinterpret_cast<const char*>(names.data()), names.size());
  const auto read = [&](std::uint64_t at, auto& record) {
    if (table.size() < sizeof record || at > table.size() - sizeof record) return false;
    std::memcpy(&record, table.data() + at, sizeof record);
    return true;
  };
  std::vector<std::uint16_t> numbers;
  Elf64_Verneed need{};
  std::size_t seen = 0;
  for (std::uint64_t at = 0; !table.empty() && read(at, need); at += need.vn_next) {
    Elf64_Vernaux version{};
    for (std::uint64_t of = at + need.vn_aux; read(of, version) && seen < kMostVersions; of += version.vna_next) {
      ++seen;
      const std::string_view name = version.vna_name < texts.size() ? texts.substr(version.vna_name) : "";
      for (const std::string_view begin : {"GLIBC_", "GLIBCXX_", "CXXABI_"})
        if (name.starts_with(begin)) numbers.push_back(version.vna_other);
      if (version.vna_next == 0) break;
    }
    if (need.vn_next == 0 || ++seen >= kMostVersions) break;
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<ElfImage::Import> ElfImage::imported() const {
  std::vector<Import> found;
  const std::vector<std::uint16_t> glibcs = versions_of_glibc();
  const auto versions = from(dynamic(DT_VERSYM));
  const auto is_glibcs = [&](std::uint64_t symbol) {
    constexpr std::uint16_t kHidden = 0x8000;
    if (symbol >= versions.size() / sizeof(std::uint16_t)) return false;
    const auto version = load<std::uint16_t>(versions.data() + symbol * sizeof(std::uint16_t));
    return std::binary_search(glibcs.begin(), glibcs.end(), static_cast<std::uint16_t>(version & ~kHidden));
  };
  const auto symbols = from(dynamic(DT_SYMTAB));
  const auto names = from(dynamic(DT_STRTAB));
  std::uint64_t most_text = 4 * bytes_.size();
  const auto read_table = [&](std::uint64_t begin, std::uint64_t size) {
    const auto table = from(begin);
    for (std::size_t at = 0; begin != 0 && at + sizeof(Elf64_Rela) <= std::min<std::uint64_t>(size, table.size());
         at += sizeof(Elf64_Rela)) {
      const auto r = load<Elf64_Rela>(table.data() + at);
      const std::uint64_t number = ELF64_R_SYM(r.r_info);
      if (number == 0 || number >= symbols.size() / sizeof(Elf64_Sym)) continue;
      const auto symbol = load<Elf64_Sym>(symbols.data() + number * sizeof(Elf64_Sym));
      if (symbol.st_name >= names.size()) continue;
      const auto* text = reinterpret_cast<const char*>(names.data()) + symbol.st_name;
      const std::uint64_t most = std::min<std::uint64_t>({names.size() - symbol.st_name, kMostName, most_text});
      found.push_back({r.r_offset, {text, strnlen(text, most)}, is_glibcs(number)});
      most_text -= found.back().name.size();
    }
  };
  read_table(dynamic(DT_JMPREL), dynamic(DT_PLTRELSZ));
  read_table(dynamic(DT_RELA), dynamic(DT_RELASZ));
  return found;
}

std::vector<std::string_view> ElfImage::needed() const {
  std::vector<std::uint64_t> places;
  std::uint64_t texts = 0;
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const auto bytes = bytes_at(segment.p_offset, segment.p_filesz);
    Elf64_Dyn entry{};
    for (std::size_t at = 0; at + sizeof entry <= bytes.size(); at += sizeof entry) {
      std::memcpy(&entry, bytes.data() + at, sizeof entry);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED && places.size() < kMostNeeded) places.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) texts = entry.d_un.d_ptr;
    }
  }
  std::vector<std::string_view> names;
  const auto all = from(texts);
  const std::string_view text(reinterpret_cast<const char*>(all.data()), all.size());
  for (const std::uint64_t place : places)
    if (place < text.size())
      names.push_back(text.substr(place, strnlen(text.data() + place, std::min(text.size() - place, kMostName))));
  return names;
}

bool ElfImage::has_restartable_sequences() const {
  return section("__rseq_cs") != nullptr || section("__rseq_cs_ptr_array") != nullptr;
}

std::span<const std::byte> ElfImage::build_id() const {
  unsigned seen = 0;
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type != PT_NOTE) continue;
    auto notes = bytes_at(s.p_offset, s.p_filesz);
    while (notes.size() >= sizeof(Elf64_Nhdr) && seen++ < kMostNotes) {
      const auto note = load<Elf64_Nhdr>(notes.data());
      const std::uint64_t name = (std::uint64_t{note.n_namesz} + 3) / 4 * 4;
      const std::uint64_t content = (std::uint64_t{note.n_descsz} + 3) / 4 * 4;
      if (sizeof note + name + content > notes.size()) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(notes.data() + sizeof note, "GNU", 4) == 0)
        return notes.subspan(sizeof note + name, note.n_descsz);
      notes = notes.subspan(sizeof note + name + content);
    }
  }
  return {};
}

std::span<const std::byte> ElfImage::contents(const char* name) const {
  const Elf64_Shdr* found = section(name);
  return found == nullptr || found->sh_type == SHT_NOBITS ? std::span<const std::byte>()
                                                          : bytes_at(found->sh_offset, found->sh_size);
}

std::uint64_t ElfImage::section_address(const char* name) const {
  const Elf64_Shdr* found = section(name);
  return found == nullptr ? 0 : found->sh_addr;
}

bool ElfImage::is_writable(std::uint64_t address, std::uint64_t size) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const Elf64_Phdr& s) {
    return s.p_type == PT_LOAD && (s.p_flags & PF_W) != 0 && address >= s.p_vaddr && size <= s.p_memsz &&
           address - s.p_vaddr <= s.p_memsz - size;
  });
}

}  // namespace karst::patch
