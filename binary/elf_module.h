// SPDX-License-Identifier: MIT
// A module's ELF file and its debug file, as elfutils' libdwfl finds them.
#pragma once
#include <elfutils/libdwfl.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "binary/debug_files.h"
#include "binary/module_file.h"

namespace karst::binary {

/// Addresses [begin, end) of the ELF file.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// A function of the ELF symbol table. `name` lives as long as the module.
struct ElfFunction {
  AddressRange range;
  const char* name = nullptr;
  int rank = 0;          ///< 0 global, 1 weak, 2 local: which one of several names to prefer
  bool chooses = false;  ///< it chooses the code that has this name while the program runs (STT_GNU_IFUNC)
};

/// Owns what libdwfl opened. One thread at a time.
class ElfModule {
 public:
  /// Errors: not there, not a regular file, not a whole ELF file, not for x86-64, an object file or archive.
  /// `search` says where else its debug information may be. The vdso goes by its names.
  /// Also: it is not the file that ran, and nor is the one that is mapped.
  static Result<ElfModule> open(const ModuleFile& file, const DebugSearch& search = {});

  /// Raw bytes; empty when the file has none.
  std::string_view build_id() const { return build_id_; }
  /// Where functions can be, sorted. Debug information of functions that the linker threw away lies outside.
  const std::vector<AddressRange>& text() const { return text_; }
  bool in_text(std::uint64_t address) const;
  /// Function symbols of .symtab, or of .dynsym where that is all there is, in order of address.
  std::vector<ElfFunction> functions() const;
  /// For each address the variable of the symbol table that has it; without a name where there is none.
  std::vector<ElfFunction> objects_at(const std::vector<std::uint64_t>& addresses) const;
  /// Null when there is no DWARF, neither here nor in a debug file. `bias` is added to its addresses.
  Dwarf* dwarf(Dwarf_Addr* bias) const { return dwfl_module_getdwarf(module_, bias); }
  /// How the search for debug files went; ask after dwarf().
  const DebugFiles& debug_files() const { return *debug_files_; }

 private:
  static Result<ElfModule> open(int descriptor, const std::filesystem::path& path, const DebugSearch& search);
  struct End {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
  };
  std::unique_ptr<DebugFiles> debug_files_;  // dwfl_ refers to it
  std::unique_ptr<Dwfl, End> dwfl_;
  Dwfl_Module* module_ = nullptr;
  std::string_view build_id_;
  std::vector<AddressRange> text_;
};

}  // namespace karst::binary
