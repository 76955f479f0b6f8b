// A module's places and table, found by a sandbox (symbols/sandbox.h): its file is somebody else's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "patch/places.h"
#include "symbols/credentials.h"

namespace karst::patch {

/// One function of the module, and what becomes of it.
struct Outcome {
  std::uint64_t begin = 0;  ///< ELF address
  std::uint64_t end = 0;
  LeftOut left_out = LeftOut::kNot;
};

struct ModulePlaces {
  std::vector<std::byte> table;    ///< format/patch_table.h; empty when no function can be patched
  std::vector<Outcome> functions;  ///< in order of address

  std::uint64_t patched() const;
  /// How many are left out for each reason.
  std::array<std::uint64_t, kLeftOutCount> counts() const;
};

/// `descriptor`: the module's file, open for reading. Errors are phrases behind the file's name.
Result<ModulePlaces> find_in_file(int descriptor, const PlaceOptions& options,
                                  const std::optional<symbols::Credentials>& as);

}  // namespace karst::patch
