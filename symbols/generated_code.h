// SPDX-License-Identifier: MIT
// Names of a process's generated code, from the file that it keeps for perf (symbols/perf_map.h), read in a sandbox.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/model.h"
#include "sandbox/credentials.h"

namespace karst::symbols {

struct GeneratedNames {
  struct Name {
    std::string name;       ///< demangled; empty: none
    std::string link_name;  ///< as the program wrote it
  };
  std::vector<Name> names;  ///< of each address
  std::string problem;      ///< why some have none, where more is known than that they are not in the file
};

/// The names of what the process has at run-time addresses (sorted, each once); of a forked child, its parent's where
/// its own file does not know. Where code took another's place the later one is named.
GeneratedNames generated_names(const reader::Process& process, const std::vector<std::uint64_t>& addresses,
                               const std::optional<sandbox::Credentials>& as);

}  // namespace karst::symbols
