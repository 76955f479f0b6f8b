#include "symbols/dwarf_functions.h"

#include <dwarf.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

namespace karst::symbols {
namespace {

/// Namespaces in namespaces, functions in functions; more is a damaged file.
constexpr int kMaxDepth = 64;
/// Parts of one function (hot, cold), and of all units; a damaged file can give each function the same long list.
constexpr int kMaxParts = 64;
constexpr std::size_t kMaxUnitRanges = std::size_t{1} << 22;

bool starts_before(std::uint64_t address, const AddressRange& range) { return address < range.begin; }

}  // namespace

DwarfFunctions::DwarfFunctions(const ElfModule& module, ImageBuilder& builder) : module_(module), builder_(builder) {
  Dwarf_Addr bias = 0;
  dwarf_ = module.dwarf(&bias);
  bias_ = bias;
  if (dwarf_ == nullptr) return;
  Dwarf_CU* cu = nullptr;
  Dwarf_Half version = 0;
  std::uint8_t type = 0;
  Dwarf_Die unit;
  Dwarf_Die split;
  while (dwarf_get_units(dwarf_, cu, &cu, &version, &type, &unit, &split) == 0) {
    if (type == DW_UT_type || type == DW_UT_split_type) continue;
    note_unit(&unit);
    furthest_ = nullptr;
    // With -gsplit-dwarf the functions are in the .dwo file, when it is at hand.
    walk(type == DW_UT_skeleton && dwarf_tag(&split) == DW_TAG_compile_unit ? &split : &unit, 0);
  }
  std::stable_sort(functions_.begin(), functions_.end(),
                   [](const auto& a, const auto& b) { return a.range.begin < b.range.begin; });
  std::stable_sort(units_.begin(), units_.end(),
                   [](const auto& a, const auto& b) { return a.range.begin < b.range.begin; });
}

void DwarfFunctions::note_unit(Dwarf_Die* unit) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  for (std::ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;) {
    if (units_.size() >= kMaxUnitRanges) return;
    if (begin < end && module_.in_text(begin + bias_)) units_.push_back({{begin + bias_, end + bias_}, *unit});
  }
}

void DwarfFunctions::walk(Dwarf_Die* parent, int depth) {
  Dwarf_Die die;
  if (depth > kMaxDepth || dwarf_child(parent, &die) != 0) return;
  while (true) {
    // DIEs lie behind each other in the file, parents before children. A DW_AT_sibling that says otherwise would have
    // us walk in circles, or through the same DIEs once for each way to them.
    if (furthest_ != nullptr && std::less_equal<>()(die.addr, furthest_)) return;
    furthest_ = die.addr;
    switch (dwarf_tag(&die)) {
      case DW_TAG_subprogram:
        add_function(&die);
        // Functions of C in functions, and what g++ puts there: members of local classes and lambdas.
        walk(&die, depth + 1);
        break;
      case DW_TAG_lexical_block:
      case DW_TAG_namespace:
      case DW_TAG_module:
        walk(&die, depth + 1);
        break;
      default:
        break;
    }
    Dwarf_Die next;
    if (dwarf_siblingof(&die, &next) != 0) return;
    die = next;
  }
}

void DwarfFunctions::add_function(Dwarf_Die* die) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  SourcePlace place;
  bool placed = false;
  std::ptrdiff_t at = 0;
  for (int part = 0; part < kMaxParts && (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0; ++part) {
    // The linker leaves 0 or 1 where it threw a function away (COMDAT, --gc-sections).
    if (begin >= end || !module_.in_text(begin + bias_)) continue;
    if (!placed) place = definition(die);
    placed = true;
    functions_.push_back({{begin + bias_, end + bias_}, *die, place});
  }
}

SourcePlace DwarfFunctions::definition(Dwarf_Die* die) {
  // Not dwarf_decl_file: to elfutils 0.188 file 0 is none, in DWARF 5 it is the unit's first, which clang uses.
  SourcePlace place;
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_line, &attribute), &number) == 0 && number <= 0xffffffffU) {
    place.line = static_cast<std::uint32_t>(number);
  }
  if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_file, &attribute), &number) != 0) return {};
  Dwarf_Half version = 0;
  Dwarf_Die unit;
  if (dwarf_cu_die(attribute.cu, &unit, &version, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr) return {};
  if (number == 0 && version < 5) return {};
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrcfiles(&unit, &files, &count) != 0 || number >= count) return {};
  place.file = intern_path(dwarf_filesrc(files, number, nullptr, nullptr), &unit);
  return place.file != 0 && place.line != 0 ? place : SourcePlace{};
}

std::uint32_t DwarfFunctions::intern_path(const char* path, Dwarf_Die* unit) {
  if (path == nullptr || path[0] == '\0') return 0;
  auto [it, fresh] = paths_.try_emplace(path, 0);
  if (fresh) {
    std::filesystem::path full(path);
    if (full.is_relative()) {  // clang: `.` as an include directory of DWARF 5
      Dwarf_Attribute attribute;
      const char* directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
      if (directory != nullptr) full = directory / full;
    }
    // By text alone: a symbolic link stays what it is.
    it->second = builder_.intern(full.lexically_normal().string());
  }
  return it->second;
}

std::pair<std::size_t, std::size_t> DwarfFunctions::at(std::uint64_t address) const {
  auto after =
      std::upper_bound(functions_.begin(), functions_.end(), address,
                       [](std::uint64_t a, const DwarfFunction& function) { return starts_before(a, function.range); });
  auto index = static_cast<std::size_t>(after - functions_.begin());
  std::size_t first = index;
  while (first > 0 && functions_[first - 1].range.begin == address) --first;
  if (first != index) return {first, index};
  // Nested functions lie outside of each other, so the nearest one before is the only candidate.
  if (index > 0 && address < functions_[index - 1].range.end) return {index - 1, index};
  return {0, 0};
}

SourcePlace DwarfFunctions::line_at(std::uint64_t address) {
  auto after = std::upper_bound(units_.begin(), units_.end(), address,
                                [](std::uint64_t a, const UnitRange& unit) { return starts_before(a, unit.range); });
  if (after == units_.begin() || address >= std::prev(after)->range.end) return {};
  Dwarf_Die unit = std::prev(after)->unit;
  Dwarf_Line* line = dwarf_getsrc_die(&unit, address - bias_);
  int number = 0;
  if (line == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0) return {};
  SourcePlace place{intern_path(dwarf_linesrc(line, nullptr, nullptr), &unit), static_cast<std::uint32_t>(number)};
  return place.file != 0 ? place : SourcePlace{};
}

std::string_view DwarfFunctions::link_name(const DwarfFunction& function) {
  Dwarf_Die die = function.die;
  Dwarf_Attribute attribute;
  for (unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    const char* text = dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute));
    if (text != nullptr && text[0] != '\0') return text;
  }
  return {};
}

}  // namespace karst::symbols
