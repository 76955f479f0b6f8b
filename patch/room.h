// SPDX-License-Identifier: MIT
// What patches of a module cover, of which no two may meet, and padding where jumps can stand.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "patch/flow.h"
#include "patch/places.h"

namespace karst::patch {

class Room {
 public:
  /// All must outlive it.
  Room(const Frames& frames, const Code& code, const Flow& flow)
      : frames_(frames), code_(code), flow_(flow), taken_(code.no_addresses()) {}

  void take(std::uint64_t begin, std::uint64_t end) { taken_.add(begin, end); }
  bool is_free(std::uint64_t begin, std::uint64_t end) const { return !taken_.has_one(begin, end); }

  /// May go on beside take() and is_free().
  void gather_padding();
  /// Short jumps get their padding: last, as only then it is known which is left.
  void settle_short_jumps(Places& places);

 private:
  bool settle(Jump& jump);
  bool settle(Function& function);
  std::optional<std::uint64_t> find_padding(const Jump& jump) const;

  const Frames& frames_;
  const Code& code_;
  const Flow& flow_;
  AddressSet taken_;
  std::map<std::uint64_t, std::uint64_t> padding_;  ///< begin: end
};

}  // namespace karst::patch
