// SPDX-License-Identifier: MIT
#include "symbols/dwarf_functions.h"

#include <dwarf.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

namespace karst::symbols {
namespace {

/// Namespaces in namespaces, functions in functions, blocks in what was inlined into blocks; more is a damaged file.
constexpr int kMaxDepth = 256;
/// Of all functions of a module; 28 bytes each.
constexpr std::size_t kMaxInlined = std::size_t{1} << 22;
/// A demangled name that is longer is kept as the linker has it: there may be very many of them.
constexpr std::size_t kMaxInlinedName = std::size_t{64} << 10;
/// Parts of one function (hot, cold), and of all units; a damaged file can give each function the same long list.
constexpr int kMaxParts = 64;
constexpr std::size_t kMaxUnitRanges = std::size_t{1} << 22;

/// Has code: the compiler leaves DIEs of inlined functions of which nothing remained.
bool has_code(Dwarf_Die* die) { return dwarf_hasattr(die, DW_AT_low_pc) != 0 || dwarf_hasattr(die, DW_AT_ranges) != 0; }

Language language_of(Dwarf_Die* unit) {
  switch (dwarf_srclang(unit)) {
    case DW_LANG_Ada83:
    case DW_LANG_Ada95:
    case 0x2e:  // Ada 2005 and 2012, which elfutils 0.188 has no names for
    case 0x2f:
      return Language::kAda;
    default:
      return Language::kOther;
  }
}

bool starts_before(std::uint64_t address, const binary::AddressRange& range) { return address < range.begin; }

}  // namespace

DwarfFunctions::DwarfFunctions(const binary::ElfModule& module, ImageBuilder& builder)
    : module_(module), builder_(builder) {
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
    const bool has_split = type == DW_UT_skeleton && dwarf_tag(&split) == DW_TAG_compile_unit;
    if (type == DW_UT_skeleton) note_split(&unit, has_split);
    Dwarf_Die* functions = has_split ? &split : &unit;
    language_ = language_of(functions);
    walk(functions, 0, {});
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

void DwarfFunctions::note_split(Dwarf_Die* unit, bool found) {
  ++split_units_;
  if (found) return;
  Dwarf_Attribute attribute;
  for (unsigned name : {DW_AT_dwo_name, DW_AT_GNU_dwo_name}) {
    const char* file = dwarf_formstring(dwarf_attr(unit, name, &attribute));
    if (file == nullptr) continue;
    if (split_missing_++ != 0) return;
    const char* directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    std::filesystem::path path(file);
    if (path.is_relative() && directory != nullptr) path = directory / path;
    first_split_missing_ = path.lexically_normal().string();
    return;
  }
}

void DwarfFunctions::walk(Dwarf_Die* parent, int depth, Inlining inlining) {
  Dwarf_Die die;
  if (depth > kMaxDepth || dwarf_child(parent, &die) != 0) return;
  while (true) {
    // DIEs lie behind each other in the file, parents before children. A DW_AT_sibling that says otherwise would have
    // us walk in circles, or through the same DIEs once for each way to them.
    if (furthest_ != nullptr && std::less_equal<>()(die.addr, furthest_)) return;
    furthest_ = die.addr;
    switch (dwarf_tag(&die)) {
      case DW_TAG_subprogram:
        walk_function(&die, depth);
        break;
      case DW_TAG_inlined_subroutine:
        walk(&die, depth + 1, add_inlined(&die, inlining));
        break;
      case DW_TAG_lexical_block:
      case DW_TAG_namespace:
      case DW_TAG_module:
        walk(&die, depth + 1, inlining);
        break;
      default:
        break;
    }
    Dwarf_Die next;
    if (dwarf_siblingof(&die, &next) != 0) return;
    die = next;
  }
}

void DwarfFunctions::walk_function(Dwarf_Die* die, int depth) {
  const std::size_t first_part = functions_.size();
  add_function(die);
  const std::size_t parts_end = functions_.size();
  InlineTree tree;
  const bool has_part = parts_end != first_part;
  // Functions of C in functions, and what g++ puts there: members of local classes and lambdas.
  walk(die, depth + 1, has_part ? Inlining{&tree, InlineTree::kRoot} : Inlining{});
  if (tree.empty()) return;
  auto& inlined = builder_.inlined();
  const auto first = static_cast<std::uint32_t>(inlined.size());
  tree.flatten(inlined);
  if (inlined.size() > kMaxInlined) {
    inlined.resize(first);
    inlined_cut_ = true;
    return;
  }
  for (std::size_t part = first_part; part != parts_end; ++part) {
    functions_[part].inlined_first = first;
    functions_[part].inlined_count = static_cast<std::uint32_t>(inlined.size()) - first;
  }
}

DwarfFunctions::Inlining DwarfFunctions::add_inlined(Dwarf_Die* die, Inlining into) {
  if (into.node == InlineTree::kNowhere || !has_code(die)) return {};
  Dwarf_Attribute attribute;
  Dwarf_Die origin;
  if (dwarf_formref_die(dwarf_attr(die, DW_AT_abstract_origin, &attribute), &origin) == nullptr) return {};
  const InlineTree::Place place = into.tree->add(into.node, origin.addr);
  if (place.node == InlineTree::kNowhere) inlined_cut_ = true;
  if (place.fresh) {
    const Origin& of = origin_of(&origin);
    ImageInlined& record = into.tree->record(place.node);
    record.name = of.name;
    record.file = of.place.file;
    record.line = of.place.line;
    Dwarf_Word number = 0;
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &number) == 0 && number <= 0xffffffffU) {
      record.call_line = static_cast<std::uint32_t>(number);
    }
    if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &number) == 0) {
      record.call_file = file_path(attribute.cu, number);
    }
  }
  return {into.tree, place.node};
}

const DwarfFunctions::Origin& DwarfFunctions::origin_of(Dwarf_Die* die) {
  auto [it, fresh] = origins_.try_emplace(die->addr);
  if (fresh) {
    const std::string_view link_name = link_name_of(die);
    auto [name, new_name] = demangled_.try_emplace(link_name, 0);
    if (new_name) {
      std::string text = demangle(std::string(link_name).c_str(), language_);
      if (text.size() > kMaxInlinedName) text = link_name.substr(0, kMaxInlinedName);
      name->second = builder_.intern(text.empty() ? "?" : text);
    }
    it->second = {name->second, definition(die)};
  }
  return it->second;
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
    functions_.push_back({{begin + bias_, end + bias_}, *die, place, language_});
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
  place.file = file_path(attribute.cu, number);
  return place.file != 0 && place.line != 0 ? place : SourcePlace{};
}

std::uint32_t DwarfFunctions::file_path(Dwarf_CU* cu, Dwarf_Word number) {
  Dwarf_Half version = 0;
  Dwarf_Die unit;
  if (dwarf_cu_die(cu, &unit, &version, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr) return 0;
  if (number == 0 && version < 5) return 0;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrcfiles(&unit, &files, &count) != 0 || number >= count) return 0;
  return intern_path(dwarf_filesrc(files, number, nullptr, nullptr), &unit);
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
  return link_name_of(&die);
}

std::string_view DwarfFunctions::link_name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    const char* text = dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
    if (text != nullptr && text[0] != '\0') return text;
  }
  return {};
}

}  // namespace karst::symbols
