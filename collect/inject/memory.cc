// SPDX-License-Identifier: MIT
#include "collect/inject/memory.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "arch/page.h"

namespace karst::collect {
namespace {

constexpr std::uint64_t kLowest = std::uint64_t{1} << 32;
constexpr std::uint64_t kHighest = std::uint64_t{1} << 47;
constexpr unsigned kMostHeaders = 64;
constexpr unsigned kMostEntries = 512;   // of a dynamic section
constexpr unsigned kMostChain = 10'000;  // of names in one bucket
constexpr std::size_t kMostModules = 10'000;

std::uint32_t hash_of(const std::string& name) {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

void name_moved_code(std::vector<Mapping>& all) {
  const auto is_nameless = [](const Mapping& m) { return m.path.empty() || m.path.starts_with("[anon"); };
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Mapping& before = all[i - 1];
    if (!is_nameless(all[i]) || !all[i].is_code() || !before.path.starts_with('/') || before.end != all[i].begin)
      continue;
    std::size_t next = i + 1;
    while (next < all.size() && is_nameless(all[next]) && all[next].begin == all[next - 1].end) ++next;
    if (next == all.size() || all[next].path != before.path || all[next].begin != all[next - 1].end) continue;
    all[i].path = before.path;
    all[i].inode = before.inode;
    all[i].offset = before.offset + (before.end - before.begin);
  }
}

}  // namespace

std::vector<Mapping> mappings_of(const HeldProcess& process) {
  std::vector<Mapping> all = read_maps(process.path("maps"));
  name_moved_code(all);
  return all;
}

std::optional<std::uint64_t> free_place(const std::vector<Mapping>& mappings, std::uint64_t size) {
  // The middle of the largest gap: the kernel gives new mappings places at the ends of gaps.
  std::uint64_t before = kLowest;
  std::uint64_t best = 0;
  std::uint64_t largest = 0;
  for (const Mapping& m : mappings) {
    if (m.begin >= kHighest) break;
    if (m.begin > before && m.begin - before > largest) {
      largest = m.begin - before;
      best = before + largest / 2;
    }
    before = m.end > before ? m.end : before;
  }
  if (largest / 4 < size) return std::nullopt;
  return best & ~(arch::kPage - 1);
}

Result<ForeignMemory> ForeignMemory::open(const HeldProcess& process) {
  Descriptor file(::open(process.path("mem").c_str(), O_RDWR | O_CLOEXEC));
  const int error = errno;
  if (file) return ForeignMemory(std::move(file));
  if (!process.is_there() || error == ESRCH) return Error{"it has ended"};
  return Error{std::string("its memory cannot be opened: ") + std::strerror(error)};
}

bool ForeignMemory::is_of(const HeldProcess& process, pid_t thread) const {
  const ForeignMemory now(Descriptor(::open(process.path(thread, "mem").c_str(), O_RDONLY | O_CLOEXEC)));
  if (!now.file_) return false;
  // The kernel gives each program 16 random bytes. Who can read those of a program can trace it as well.
  std::ifstream auxv(process.path(thread, "auxv"), std::ios::binary);
  for (Elf64_auxv_t entry; auxv.read(reinterpret_cast<char*>(&entry), sizeof entry);) {
    if (entry.a_type != AT_RANDOM) continue;
    using Random = std::array<unsigned char, 16>;
    const auto its = now.get<Random>(entry.a_un.a_val);
    return its && get<Random>(entry.a_un.a_val) == its;
  }
  return false;
}

bool ForeignMemory::read(std::uint64_t address, void* to, std::size_t size) const {
  return address < kHighest && pread(file_.get(), to, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

bool ForeignMemory::write(std::uint64_t address, const void* from, std::size_t size) const {
  return address < kHighest &&
         pwrite(file_.get(), from, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

std::string ForeignMemory::text(std::uint64_t address, std::size_t most) const {
  std::string text;
  for (char c = 0; text.size() < most && read(address + text.size(), &c, 1) && c != '\0';) text += c;
  return text;
}

bool ForeignMemory::is_text(std::uint64_t address, std::string_view text) const {
  std::string there(text.size() + 1, '\0');
  return read(address, there.data(), there.size()) && there.back() == '\0' && text == there.c_str();
}

std::optional<ForeignModule> ForeignModule::of(const ForeignMemory& memory, std::uint64_t base) {
  const auto header = memory.entry<Elf64_Ehdr>(base);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > kMostHeaders)
    return std::nullopt;
  ForeignModule module;
  std::optional<std::uint64_t> first;
  std::uint64_t dynamic = 0;
  std::uint64_t code_end = 0;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto part = memory.entry<Elf64_Phdr>(base + header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!part) return std::nullopt;
    if (part->p_type == PT_LOAD && !first) first = part->p_vaddr & ~(arch::kPage - 1);
    if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 && part->p_filesz == part->p_memsz)
      code_end = part->p_vaddr + part->p_filesz;
    if (part->p_type == PT_DYNAMIC) dynamic = part->p_vaddr;
  }
  if (!first) return std::nullopt;
  module.base_ = base - *first;
  if (code_end != 0) {
    module.slack_ = (module.base_ + code_end + 15) & ~std::uint64_t{15};
    module.slack_size_ = (arch::kPage - module.slack_ % arch::kPage) % arch::kPage;
  }
  if (dynamic != 0) module.dynamic_ = module.base_ + dynamic;
  for (unsigned i = 0; dynamic != 0 && i < kMostEntries; ++i) {
    const auto entry = memory.entry<Elf64_Dyn>(module.base_ + dynamic + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    // glibc writes the addresses over the file's; others leave these.
    const std::uint64_t value = entry->d_un.d_ptr < base ? entry->d_un.d_ptr + module.base_ : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) module.symbols_ = value;
    if (entry->d_tag == DT_STRTAB) module.names_ = value;
    if (entry->d_tag == DT_GNU_HASH) module.hashes_ = value;
    if (entry->d_tag == DT_STRSZ) module.names_size_ = entry->d_un.d_val;
    if (entry->d_tag == DT_RELA) module.relocations_[0] = value;
    if (entry->d_tag == DT_RELASZ) module.relocations_size_[0] = entry->d_un.d_val;
    if (entry->d_tag == DT_JMPREL) module.relocations_[1] = value;
    if (entry->d_tag == DT_PLTRELSZ) module.relocations_size_[1] = entry->d_un.d_val;
  }
  return module;
}

std::uint64_t ForeignModule::find(const ForeignMemory& memory, const std::string& name) const {
  if (hashes_ == 0 || symbols_ == 0 || names_ == 0) return 0;
  struct Table {
    std::uint32_t buckets;
    std::uint32_t first;
    std::uint32_t bloom_words;
    std::uint32_t shift;
  };
  const auto table = memory.entry<Table>(hashes_);
  if (!table || table->buckets == 0) return 0;
  const std::uint32_t hash = hash_of(name);
  const std::uint64_t buckets = hashes_ + sizeof(Table) + std::uint64_t{8} * table->bloom_words;
  const std::uint64_t chains = buckets + std::uint64_t{4} * table->buckets;
  const auto bucket = memory.entry<std::uint32_t>(buckets + std::uint64_t{4} * (hash % table->buckets));
  if (!bucket || *bucket < table->first) return 0;
  for (std::uint64_t at = *bucket; at - *bucket < kMostChain; ++at) {
    const auto chain = memory.entry<std::uint32_t>(chains + 4 * (at - table->first));
    if (!chain) return 0;
    if ((*chain | 1U) == (hash | 1U)) {
      const auto symbol = memory.entry<Elf64_Sym>(symbols_ + at * sizeof(Elf64_Sym));
      if (!symbol) return 0;
      const auto type = ELF64_ST_TYPE(symbol->st_info);
      if (symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && (type == STT_FUNC || type == STT_OBJECT) &&
          memory.is_text(names_ + symbol->st_name, name))
        return base_ + symbol->st_value;
    }
    if ((*chain & 1U) != 0) return 0;
  }
  return 0;
}

void ForeignModule::for_each_slot(const ForeignMemory& memory, std::uint64_t& most,
                                  const std::function<void(std::string_view name, std::uint64_t slot)>& visit) const {
  const auto may_read = [&most](std::uint64_t size) {
    if (size > most) return false;
    most -= size;
    return true;
  };
  if (symbols_ == 0 || names_ == 0 || !may_read(names_size_)) return;
  std::vector<char> names(names_size_);
  if (!memory.read(names_, names.data(), names.size())) return;
  for (const int table : {0, 1}) {
    const std::uint64_t size = relocations_size_[table];
    if (relocations_[table] == 0 || !may_read(size)) continue;
    std::vector<Elf64_Rela> relocations(size / sizeof(Elf64_Rela));
    if (!memory.read(relocations_[table], relocations.data(), relocations.size() * sizeof(Elf64_Rela))) continue;
    std::uint64_t last = 0;
    const auto is_slot = [](const Elf64_Rela& r) {
      return ELF64_R_TYPE(r.r_info) == R_X86_64_JUMP_SLOT || ELF64_R_TYPE(r.r_info) == R_X86_64_GLOB_DAT;
    };
    for (const Elf64_Rela& r : relocations)
      if (is_slot(r)) last = std::max<std::uint64_t>(last, ELF64_R_SYM(r.r_info));
    if (!may_read(last * sizeof(Elf64_Sym))) continue;
    std::vector<Elf64_Sym> symbols(last + 1);
    if (!memory.read(symbols_, symbols.data(), symbols.size() * sizeof(Elf64_Sym))) continue;
    for (const Elf64_Rela& r : relocations) {
      if (!is_slot(r)) continue;
      const std::uint64_t name = symbols[ELF64_R_SYM(r.r_info)].st_name;
      if (name < names.size())
        visit({names.data() + name, strnlen(names.data() + name, names.size() - name)}, base_ + r.r_offset);
    }
  }
}

std::uint64_t find_in_runtime(const ForeignMemory& memory, const std::vector<Mapping>& mappings,
                              const std::string& name) {
  for (const Mapping& m : mappings) {
    if (m.offset != 0 || !m.is_runtime()) continue;
    const auto runtime = ForeignModule::of(memory, m.begin);
    return runtime ? runtime->find(memory, name) : 0;
  }
  return 0;
}

std::optional<std::vector<std::uint64_t>> own_modules(const ForeignMemory& memory,
                                                      const std::vector<Mapping>& mappings) {
  struct LinkMap {
    std::uint64_t bias, name, dynamic, next;
  };
  for (auto first = mappings.begin(); first != mappings.end(); ++first) {
    const Mapping& m = *first;
    if (m.offset != 0 || !m.file_name().starts_with("ld-")) continue;
    // qemu's emulation of a program has that program's linker in memory, too, and its code is not to be executed.
    const auto end = std::find_if(first, mappings.end(), [&m](const Mapping& of) { return of.path != m.path; });
    if (std::none_of(first, end, [](const Mapping& of) { return of.is_code(); })) continue;
    const auto linker = ForeignModule::of(memory, m.begin);
    const std::uint64_t debug = linker ? linker->find(memory, "_r_debug") : 0;
    if (debug == 0) continue;
    auto at = memory.entry<std::uint64_t>(debug + sizeof(std::uint64_t));
    std::vector<std::uint64_t> found;
    while (at && *at != 0 && found.size() < kMostModules) {
      const auto map = memory.entry<LinkMap>(*at);
      if (!map) return std::nullopt;
      found.push_back(map->dynamic);
      at = map->next;
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace karst::collect
