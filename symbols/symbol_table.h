// SPDX-License-Identifier: MIT
// The functions of one module (executable or shared library), sorted by address, built in one pass over its ELF symbols
// and its debug information.
//
// A table lives in one block of memory, its *image* (symbol_image.h), which is also what the cache keeps on disk: a
// cached table is ready after one read and one check. Rows are disjoint address ranges, so a lookup is one binary
// search. Addresses are those of the ELF file: run-time address minus the module's bias.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "binary/debug_search.h"
#include "binary/module_file.h"

namespace karst::symbols {

/// One function, or one of its parts (`.cold`). The texts live as long as the table.
struct Symbol {
  std::uint64_t begin = 0;     ///< ELF address
  std::uint64_t end = 0;       ///< one past
  std::string_view name;       ///< demangled, with parameters, without return type
  std::string_view link_name;  ///< as the linker knows it; of DWARF alone when the symbol table does not have it
  std::string_view file;   ///< absolute where the debug information allows it, without `.` and `..`; empty: not known
  std::uint32_t line = 0;  ///< of the definition, from 1; 0: not known
  std::uint32_t inlined_first = 0;  ///< what was inlined into it, for SymbolTable::inlined_at()
  std::uint32_t inlined_count = 0;
};

/// A function that was inlined into another one; the fields mean what those of reader::InlinedCall do.
struct InlinedSymbol {
  std::string_view name;
  std::string_view file;
  std::string_view call_file;
  std::uint32_t line = 0;
  std::uint32_t call_line = 0;
  std::uint32_t copies = 0;
  std::uint32_t depth = 0;
};

/// Immutable once made; any thread may read it.
class SymbolTable {
 public:
  /// Reads the module at `path` and its separate debug file, when there is one (by build-id or .gnu_debuglink, as gdb
  /// looks for it, and where `search` says). `build_id` is raw bytes as the trace has them; when not empty, a file with
  /// another one is refused, because its names would be wrong. Errors: not there, not an x86-64 executable or library,
  /// damaged, build-id mismatch. A module without symbols and debug information gives an empty table.
  static Result<SymbolTable> load(const std::filesystem::path& path, std::string_view build_id,
                                  const binary::DebugSearch& search = {});
  static Result<SymbolTable> load(const binary::ModuleFile& file, const binary::DebugSearch& search = {});

  /// Takes over an image after checking all of it: it may come from a damaged or hostile file.
  static Result<SymbolTable> from_image(std::unique_ptr<std::byte[]> image, std::size_t size);

  /// The same with what a table out of a sandbox knows beside its image.
  static Result<SymbolTable> from_image(std::unique_ptr<std::byte[]> image, std::size_t size, std::string debug_missing,
                                        std::string debug_incomplete);

  /// The function that contains the address. That need not be its first byte: an entry sled follows an endbr64.
  std::optional<Symbol> lookup(std::uint64_t elf_address) const;

  std::size_t size() const { return rows_; }
  /// Requires i < size(); rows are in order of address.
  Symbol at(std::size_t i) const;
  /// Requires i < inlined_size(). Those of one function follow each other, parents before children.
  InlinedSymbol inlined_at(std::size_t i) const;
  std::size_t inlined_size() const { return inlined_; }
  /// More was inlined than the table keeps (a module with millions of copies, or a function with thousands).
  bool inlined_cut() const;
  /// The module, or its debug file, had DWARF.
  bool has_debug_info() const;
  /// Raw bytes, as in the file; empty when it has none.
  std::string_view build_id() const;
  /// Why there is no debug information and how to get it, when it is kept apart; empty when there is, when the module
  /// was compiled without, and for a table out of the cache, which keeps only what has it.
  const std::string& debug_missing() const { return debug_missing_; }
  /// What is missing of the debug information that is there, and how to get it: units of -gsplit-dwarf, the common file
  /// of dwz. Such a table is not kept in the cache.
  const std::string& debug_incomplete() const { return debug_incomplete_; }
  std::span<const std::byte> image() const { return {image_.get(), size_}; }

 private:
  SymbolTable(std::unique_ptr<std::byte[]> image, std::size_t size, std::size_t rows, std::size_t inlined)
      : image_(std::move(image)), size_(size), rows_(rows), inlined_(inlined) {}
  const char* heap() const;

  std::unique_ptr<std::byte[]> image_;
  std::size_t size_ = 0;
  std::size_t rows_ = 0;
  std::size_t inlined_ = 0;
  std::string debug_missing_;
  std::string debug_incomplete_;
};

}  // namespace karst::symbols
