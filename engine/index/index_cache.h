// SPDX-License-Identifier: MIT
// Indexes of large traces, kept so that the next look at one begins at once: the columns and lanes of all threads in
// one file that is mapped, not read. A trace is known by its own checksums, wherever it lies and whatever it is called.
// Every part of an index has a checksum; a file that does not fit is as good as none. Looking at checksums reads all of
// it, and of the trace, so that is done once while the machine runs: a stamp in the file says when, by the machine's
// start, the time of the file's last change, and which file the trace was in and when that was changed.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>

#include "base/cache_directory.h"
#include "engine/index/index.h"

namespace karst::engine {

class IndexCache {
 public:
  /// Traces with fewer calls are indexed in less time than it takes to write this down.
  static constexpr std::uint64_t kFewCalls = 10'000'000;
  static constexpr std::uint64_t kDefaultLimit = std::uint64_t{6} << 30U;

  /// In `directory`, which is made at the first save; nowhere if that is empty. Beyond `limit` bytes the indexes not
  /// used for longest go; at least three times of what is written must stay free on the disk.
  explicit IndexCache(std::filesystem::path directory, std::uint64_t limit = kDefaultLimit,
                      std::uint64_t few_calls = kFewCalls);
  /// karst/view in $XDG_CACHE_HOME, else in ~/.cache; off when the environment names neither.
  static IndexCache of_user();

  KnownTrace look_at(const std::filesystem::path& trace) const;
  /// Fills `index`, whose trace is open and known, and whose threads are listed. False: there is nothing sound for it,
  /// and `index` may be filled by half.
  bool load(TraceIndex& index) const;
  /// Keeps an index that was built. False: it was not worth it, the trace is damaged or not known, there was no room,
  /// `stop` was set, or writing failed.
  bool save(const TraceIndex& index, const std::atomic<bool>& stop) const;
  /// Where the index of a trace is or would be; empty: nowhere.
  std::filesystem::path file_of(const KnownTrace& known) const;

 private:
  CacheDirectory files_;
  std::uint64_t few_calls_;
};

}  // namespace karst::engine
