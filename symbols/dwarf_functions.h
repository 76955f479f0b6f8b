// SPDX-License-Identifier: MIT
// What DWARF (2 to 5, compressed or not) says about functions, collected in one pass over its units.
// Private to symbols/.
#pragma once
#include <elfutils/libdw.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "binary/elf_module.h"
#include "symbols/demangle.h"
#include "symbols/dwarf_inlined.h"
#include "symbols/symbol_image.h"

namespace karst::symbols {

/// A place in a source file: offset of the path in the image's heap (0: none) and line (0: none).
struct SourcePlace {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
};

/// One contiguous part of a function that has code of its own (inlined copies do not count).
struct DwarfFunction {
  binary::AddressRange range;
  Dwarf_Die die;
  SourcePlace place;  ///< of the definition (DW_AT_decl_file, DW_AT_decl_line)
  Language language = Language::kOther;
  std::uint32_t inlined_first = 0;  ///< in the builder's inlined()
  std::uint32_t inlined_count = 0;
};

/// Reads one module's DWARF. Uses the module and the builder, which must outlive it. One thread.
class DwarfFunctions {
 public:
  /// `builder` receives the paths.
  DwarfFunctions(const binary::ElfModule& module, ImageBuilder& builder);

  /// There is DWARF, here or in a debug file.
  bool present() const { return dwarf_ != nullptr; }
  /// More was inlined than is kept.
  bool inlined_cut() const { return inlined_cut_; }
  /// Units of -gsplit-dwarf whose .dwo file was not found, of all such units, and the name of the first such file.
  std::size_t split_missing() const { return split_missing_; }
  std::size_t split_units() const { return split_units_; }
  const std::string& first_split_missing() const { return first_split_missing_; }
  /// Parts of functions in order of address. Several may begin at one address (identical code folded).
  const std::vector<DwarfFunction>& functions() const { return functions_; }
  /// The functions that begin at `address`; when there is none, the one that contains it.
  std::pair<std::size_t, std::size_t> at(std::uint64_t address) const;
  /// From the line table, for code whose function has no DIE (assembly, clang -gline-tables-only).
  SourcePlace line_at(std::uint64_t address);
  /// The linker's name, or the plain name of a function that has none (C). Empty when DWARF gives no name.
  static std::string_view link_name(const DwarfFunction& function);

 private:
  struct UnitRange {
    binary::AddressRange range;
    Dwarf_Die unit;
  };

  /// Where the walk is in what was inlined into the function around it.
  struct Inlining {
    InlineTree* tree = nullptr;
    std::uint32_t node = InlineTree::kNowhere;
  };
  /// A function's text as the image has it.
  struct Origin {
    std::uint32_t name = 0;
    SourcePlace place;
  };

  static std::string_view link_name_of(Dwarf_Die* die);
  void walk(Dwarf_Die* parent, int depth, Inlining inlining);
  void walk_function(Dwarf_Die* die, int depth);
  void add_function(Dwarf_Die* die);
  Inlining add_inlined(Dwarf_Die* die, Inlining into);
  const Origin& origin_of(Dwarf_Die* die);
  void note_split(Dwarf_Die* unit, bool found);
  SourcePlace definition(Dwarf_Die* die);
  /// The image's offset of the path of file `number` of a unit's line table.
  std::uint32_t file_path(Dwarf_CU* cu, Dwarf_Word number);
  std::uint32_t intern_path(const char* path, Dwarf_Die* unit);
  void note_unit(Dwarf_Die* unit);

  const binary::ElfModule& module_;
  ImageBuilder& builder_;
  Dwarf* dwarf_ = nullptr;
  std::uint64_t bias_ = 0;
  std::vector<DwarfFunction> functions_;
  std::vector<UnitRange> units_;
  Language language_ = Language::kOther;  // of the unit that is walked
  bool inlined_cut_ = false;
  std::size_t split_missing_ = 0;
  std::size_t split_units_ = 0;
  std::string first_split_missing_;
  std::unordered_map<const void*, Origin> origins_;                // by DIE
  std::unordered_map<std::string_view, std::uint32_t> demangled_;  // by link name, in libdw's memory
  const void* furthest_ = nullptr;                                 // of the DIEs of the unit that is walked
  std::unordered_map<const char*, std::uint32_t> paths_;           // libdw gives one pointer for each file of a unit
};

}  // namespace karst::symbols
