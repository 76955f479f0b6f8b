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
#include <string_view>

#include "reader/result.h"

namespace karst::symbols {

/// One function, or one of its parts (`.cold`). The texts live as long as the table.
struct Symbol {
  std::uint64_t begin = 0;     ///< ELF address
  std::uint64_t end = 0;       ///< one past
  std::string_view name;       ///< demangled, with parameters, without return type
  std::string_view link_name;  ///< as the linker knows it; of DWARF alone when the symbol table does not have it
  std::string_view file;   ///< absolute where the debug information allows it, without `.` and `..`; empty: not known
  std::uint32_t line = 0;  ///< of the definition, from 1; 0: not known
};

/// Immutable once made; any thread may read it.
class SymbolTable {
 public:
  /// Reads the module at `path` and its separate debug file, when there is one (by build-id or .gnu_debuglink, as gdb
  /// looks for it). `build_id` is raw bytes as the trace has them; when not empty, a file with another one is refused,
  /// because its names would be wrong. Errors: not there, not an x86-64 executable or library, damaged,
  /// build-id mismatch. A module without symbols and debug information gives an empty table.
  static Result<SymbolTable> load(const std::filesystem::path& path, std::string_view build_id);

  /// Takes over an image after checking all of it: it may come from a damaged or hostile file.
  static Result<SymbolTable> from_image(std::unique_ptr<std::byte[]> image, std::size_t size);

  /// The function that contains the address. That need not be its first byte: an entry sled follows an endbr64.
  std::optional<Symbol> lookup(std::uint64_t elf_address) const;

  std::size_t size() const { return rows_; }
  /// Requires i < size(); rows are in order of address.
  Symbol at(std::size_t i) const;
  /// The module, or its debug file, had DWARF.
  bool has_debug_info() const;
  /// Raw bytes, as in the file; empty when it has none.
  std::string_view build_id() const;
  std::span<const std::byte> image() const { return {image_.get(), size_}; }

 private:
  SymbolTable(std::unique_ptr<std::byte[]> image, std::size_t size, std::size_t rows)
      : image_(std::move(image)), size_(size), rows_(rows) {}

  std::unique_ptr<std::byte[]> image_;
  std::size_t size_ = 0;
  std::size_t rows_ = 0;
};

}  // namespace karst::symbols
