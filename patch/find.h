// SPDX-License-Identifier: MIT
// A module's places and table, found by a sandbox (sandbox/sandbox.h): its file is somebody else's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "choice/function_lists.h"
#include "patch/places.h"
#include "patch/sdt.h"
#include "patch/table_cache.h"
#include "sandbox/credentials.h"
#include "symbols/symbol_table.h"

namespace karst::patch {

/// One function of the module, and what becomes of it.
struct Outcome {
  std::uint64_t begin = 0;  ///< ELF address
  std::uint64_t end = 0;
  LeftOut left_out = LeftOut::kNot;
};

/// Functions that are wanted by their names; a name is as in symbols::GlobSet, or a linker's.
struct WantedNames {
  const choice::GlobSet* globs = nullptr;
  std::vector<std::string> texts;        ///< the globs as they were written; the first is to find names that are near
  std::vector<std::uint64_t> addresses;  ///< of functions that were found elsewhere, in a debug file
};

/// Addresses of the functions of a table, which may be a debug file's, for WantedNames.
std::vector<std::uint64_t> named_in(const symbols::SymbolTable& table, const choice::GlobSet& globs);

/// One probe of the module.
struct ProbeOutcome {
  std::string name;  ///< PROVIDER:NAME
  std::uint64_t address = 0;
  std::string description;  ///< of its values (format/values.h)
  LeftOut left_out = LeftOut::kNot;
};

/// A function of the module by the name that its dynamic symbols give it.
struct DetourOutcome {
  std::string name;
  LeftOut left_out = LeftOut::kNot;
};

/// What of a module is looked at.
struct WantedPlaces {
  bool functions = true;
  PlaceOptions options{};
  const WantedNames* named = nullptr;  ///< functions that alone are looked at; null: all
  std::vector<ProbeChoice> probes{};
  /// Functions that shall have detours where the module exports them: all of those that it has, or none.
  std::vector<std::string> detours{};
};

struct ModulePlaces {
  std::vector<std::byte> table;           ///< format/patch_table.h; empty when nothing can be patched
  std::vector<Outcome> functions;         ///< in order of address
  std::vector<ProbeOutcome> probes;       ///< that were wanted
  std::vector<DetourOutcome> detours;     ///< that were wanted and are there
  std::vector<std::string> other_probes;  ///< names of some that there are, where none of them is wanted
  std::vector<std::string> libraries;     ///< names of those that it is linked with
  std::string stack_switcher;             ///< why it is known to switch stacks (stack_switchers.h); empty: it is not
  std::vector<std::string> near;          ///< where names were wanted and nothing has such: names like those, a few

  std::uint64_t patched() const;
  /// Each function that was to have a detour has one; also where there was none to have one.
  bool has_all_detours() const;
  /// How many are left out for each reason.
  std::array<std::uint64_t, kLeftOutCount> counts() const;
};

/// `descriptor`: the module's file, open for reading. Errors are phrases behind the file's name. `cache`: where answers
/// are kept. It is left alone for the module of another user's process (`as`), as that of symbols is.
Result<ModulePlaces> find_in_file(int descriptor, const WantedPlaces& wanted,
                                  const std::optional<sandbox::Credentials>& as, const TableCache& cache = {});

}  // namespace karst::patch
