// SPDX-License-Identifier: MIT
#include "collect/launch/dead_sleds.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "format/sled_note.h"

namespace karst::collect {
namespace {

struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};

void add_entries(std::uint64_t begin, std::span<const std::byte> table, std::vector<std::uint64_t>& entries) {
  std::vector<std::uint16_t> units(table.size() / sizeof(std::uint16_t));
  if (!units.empty()) std::memcpy(units.data(), table.data(), units.size() * sizeof units[0]);
  format::walk_sleds(units.data(), units.size(), begin, 0, [&](const format::SledRecord& r, std::uint64_t /*number*/) {
    if ((r.kind & KARST_SLED_KIND_MASK) == KARST_SLED_ENTRY) entries.push_back(r.address);
    return true;
  });
}

void add_functions(const binary::ElfSection& section, std::vector<Range>& functions) {
  Elf_Data* data = elf_getdata(section.handle, nullptr);
  if (data == nullptr || section.header.sh_entsize == 0) return;
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i)
    if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF && symbol.st_size != 0)
      functions.push_back({symbol.st_value, symbol.st_value + symbol.st_size});
}

}  // namespace

DeadSleds find_dead_sleds(const binary::ElfFile& file) {
  std::vector<std::uint64_t> entries;
  std::vector<Range> functions;
  Range left_behind{0, 0};
  for (const binary::ElfSection& s : file.sections()) {
    if (s.name == "karst_sleds" || s.name == "karst_clang_sleds")
      add_entries(s.header.sh_addr, file.contents(s), entries);
    if (s.name == ".bolt.org.text") left_behind = {s.header.sh_addr, s.header.sh_addr + s.header.sh_size};
    if (s.header.sh_type == SHT_SYMTAB) add_functions(s, functions);
  }
  DeadSleds found;
  found.functions = entries.size();
  found.dead = static_cast<std::uint64_t>(std::count_if(entries.begin(), entries.end(), [&](std::uint64_t at) {
    return at >= left_behind.begin && at < left_behind.end;
  }));
  if (found.dead != 0 || functions.empty()) return found;
  std::sort(functions.begin(), functions.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const bool is_named = std::any_of(entries.begin(), entries.end(), [&](std::uint64_t at) {
    auto f = std::upper_bound(functions.begin(), functions.end(), at,
                              [](std::uint64_t a, const Range& r) { return a < r.begin; });
    return f != functions.begin() && at < (--f)->end;
  });
  if (!is_named) found.dead = found.functions;
  return found;
}

}  // namespace karst::collect
