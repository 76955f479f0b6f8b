#include "collect/launch/dead_sleds.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "format/sled_note.h"

namespace karst::collect {
namespace {

struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};

void add_entries(Elf_Scn* section, const GElf_Shdr& header, std::vector<std::uint64_t>& entries) {
  const Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return;
  std::vector<std::uint16_t> units(data->d_size / sizeof(std::uint16_t));
  std::memcpy(units.data(), data->d_buf, units.size() * sizeof units[0]);
  format::walk_sleds(units.data(), units.size(), header.sh_addr, 0,
                     [&](const format::SledRecord& r, std::uint64_t /*number*/) {
                       if ((r.kind & KARST_SLED_KIND_MASK) == KARST_SLED_ENTRY) entries.push_back(r.address);
                       return true;
                     });
}

void add_functions(Elf_Scn* section, const GElf_Shdr& header, std::vector<Range>& functions) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  GElf_Sym symbol;
  for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i)
    if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF && symbol.st_size != 0)
      functions.push_back({symbol.st_value, symbol.st_value + symbol.st_size});
}

}  // namespace

DeadSleds find_dead_sleds(Elf* elf) {
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return {};
  std::vector<std::uint64_t> entries;
  std::vector<Range> functions;
  Range left_behind{0, 0};
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* text = elf_strptr(elf, names, header.sh_name);
    const std::string_view name = text != nullptr ? text : "";
    if (name == "karst_sleds" || name == "karst_clang_sleds") add_entries(section, header, entries);
    if (name == ".bolt.org.text") left_behind = {header.sh_addr, header.sh_addr + header.sh_size};
    if (header.sh_type == SHT_SYMTAB) add_functions(section, header, functions);
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
