// SPDX-License-Identifier: MIT
// Places in code as people name them: a function, a line of a file, an address. For breakpoints.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/resolve.h"

namespace karst::choice {

struct PlaceName {
  enum class Kind { kFunction, kLine, kAddress };
  Kind kind = Kind::kFunction;
  std::string text;          ///< as given, without its count
  std::string name;          ///< function; file; or module, empty: the executable
  std::uint64_t number = 0;  ///< line, or address in the ELF file
  std::uint32_t count = 1;   ///< so many times

  /// `SYMBOL[:N]`, `FILE:LINE[:N]`, `0xADDRESS[:N]` or `MODULE+0xADDRESS[:N]`. A symbol is a demangled name with its
  /// parameters, or without, or the linker's name.
  static Result<PlaceName> parse(std::string_view text);
};

struct CodePlace {
  std::uint64_t address = 0;  ///< in the ELF file
  std::string name;           ///< of the function there
};

struct FoundPlaces {
  std::vector<CodePlace> places;          ///< in order of address
  std::vector<std::string> inlined_into;  ///< functions that have an inlined copy of the one that was asked for
};

/// Looks in one module. Nothing found is no error. Error: the module cannot be read.
Result<FoundPlaces> find_places(const PlaceName& name, const std::filesystem::path& module, bool is_executable,
                                const symbols::ResolveOptions& options);

}  // namespace karst::choice
