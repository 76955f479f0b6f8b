// SPDX-License-Identifier: MIT
// What is known of a trace before it is opened: by what its index is found in the cache (engine/index/index_cache.h).
#pragma once
#include <cstdint>
#include <optional>

namespace karst::engine {

struct KnownTrace {
  /// What it has in it, as read by this program.
  struct Contents {
    std::uint64_t high = 0;  ///< reader::Fingerprint
    std::uint64_t low = 0;
    std::uint64_t program = 0;
    bool operator==(const Contents&) const = default;
  };
  std::optional<Contents> contents;  ///< nothing: it is damaged, or there is no cache
  std::uint64_t file = 0;            ///< tells its file, as it is now, from others
  /// There is an index that needs no look at checksums. Then the trace, which is the same as when it was built, needs
  /// none, either.
  bool sound = false;

  /// Whether it was the same trace at both looks.
  bool same(const KnownTrace& other) const { return contents == other.contents && file == other.file; }
};

}  // namespace karst::engine
