// SPDX-License-Identifier: MIT
// Where a function's arguments and what it returns lie as its calls begin and end, and how to show them: from DWARF,
// and where that speaks of the stack frame, which is not there yet at an entry, by the calling convention (System V
// ABI, AMD64 supplement, 3.2.3). C and C++.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/values.h"
#include "symbols/resolve.h"

namespace karst::symbols {

struct ValueWish {
  std::uint64_t address = 0;  ///< in the ELF file; of the function's entry, or its sled
  std::string name;           ///< the symbol's: what compilers have changed is called f.isra.0, f.part.0, f.constprop.0
  bool arguments = false;
  bool returned = false;
  std::vector<std::uint32_t> only;  ///< of the arguments, from 1 on (`this` is 0); empty: all
};

struct FunctionValues {
  std::vector<format::ValueOp> arguments;
  std::vector<format::ValueOp> returned;  ///< together kMostValues at most
  std::string description;                ///< as format/values.h has it; empty: nothing is known of the function
};

/// One answer for each wish. Error: the module cannot be read, or has no debug information.
Result<std::vector<FunctionValues>> values_of(const binary::ModuleFile& module, const std::vector<ValueWish>& wishes,
                                              const ResolveOptions& options);

}  // namespace karst::symbols
