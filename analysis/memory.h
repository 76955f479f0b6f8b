// SPDX-License-Identifier: MIT
// Memory that programs took and gave back, by their records of it (format/memory.h): which path of calls took how much,
// what of it was still there at the end and at the peak.
//
// allocation   by malloc() and its like; realloc() frees one and makes one
// living       not given back until the end of what is looked at
// peak         the moment at which living allocations had the most bytes together
// short-lived  freed by its thread before that took or freed anything else (heaptrack calls them temporary)
// mapped       by mmap(), brk() and sbrk(), which is told apart: allocators take their memory so, too. Pages of mmap(),
//              bytes of the others
//
// Where allocations were sampled, each stands for 1 / (1 - exp(-size / mean)) of its size (Horvitz and Thompson's
// estimator), so that sums are unbiased. Where a thread's history does not begin with the thread, what it freed before
// is not known; nor is what was freed while records were switched off. Allocations of before then are not said to be
// living.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analysis/parts.h"
#include "columns/flame.h"
#include "columns/selection.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

/// Numbers and bytes; estimates where allocations were sampled.
struct MemorySum {
  double allocations = 0, bytes = 0;
  double living = 0, living_bytes = 0;
  double peak_bytes = 0;
  double short_lived = 0;
  double failed = 0;           ///< not among the allocations
  double bytes_variance = 0;   ///< of `bytes`, as sampling makes it; 0: they are exact
  double living_variance = 0;  ///< the same of `living_bytes`
  double mapped_bytes = 0, mapped_living_bytes = 0;

  MemorySum& operator+=(const MemorySum& other);
};

/// How many bytes lived from a moment on.
struct MemoryStep {
  std::uint64_t ticks = 0;
  double bytes = 0;
};

/// One that was recorded; it stands for `weight` of its kind.
struct MemoryAllocation {
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t ticks = 0;
  std::uint64_t freed = kNever;  ///< ticks; kNever: it was not, as far as is known
  std::uint64_t size = 0;
  double weight = 1;
  std::uint32_t row = 0;  ///< call of its thread that made it, or reader::kNoParent
  bool known = true;      ///< false: it may have been freed unseen
  double bytes() const { return static_cast<double>(size) * weight; }
  /// What sampling adds to the variance of a sum of bytes, by Horvitz and Thompson: size^2 (1 - p) / p^2.
  double variance() const { return bytes() * bytes() * (1 - 1 / std::max(weight, 1.0)); }
};

struct MemoryUse {
  columns::FlameTree tree;      ///< paths of calls; node 0: in no traced call
  std::vector<MemorySum> sums;  ///< by node, without those below
  MemorySum all;
  std::uint64_t peak_ticks = 0;
  std::uint64_t records = 0;
  std::uint64_t mean = 0;           ///< one allocation in so many bytes was recorded; 0: all
  std::uint64_t unknown_frees = 0;  ///< of what was allocated before the history, or was not recorded
  std::uint64_t known_from = 0;     ///< ticks: what was allocated before may have been freed unseen; 0: nothing. Of the
                                    ///< process for which that is latest
  std::uint64_t not_known = 0;      ///< allocations of before that seem to live
  std::vector<MemoryStep> steps;    ///< in order of time
  /// By thread, in the order in which they were added: its allocations in order of time. If keep_allocations().
  std::vector<std::vector<MemoryAllocation>> allocations;
};

/// Collects the records of a trace's threads, which may be all or some. Use from one thread. Memory: 64 bytes a record.
class MemoryFinder {
 public:
  /// `trace` and `parts` must outlive it. Without `parts` paths are not looked for, and calls may lack their columns.
  explicit MemoryFinder(const reader::Trace& trace, Parts* parts = nullptr);

  /// `calls`: all of the thread's. `counted`: by note, whether it is one that is asked for; null: all are.
  void add(const reader::Thread& thread, const reader::Calls& calls, const std::vector<bool>* counted);
  /// Has MemoryUse::allocations made.
  void keep_allocations() { keeps_ = true; }
  /// What was taken until `end`, and what of it lived then. Call once.
  MemoryUse take(std::uint64_t end);

 private:
  enum class What : std::uint8_t {
    kNothing,
    kAllocated,
    kFreed,
    kResized,
    kMapped,
    kUnmapped,
    kRemapped,
    kMovedBreak,
    kExit
  };
  struct Record {
    std::uint64_t ticks = 0;
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint64_t old = 0;    // kResized: the address before
    std::uint64_t ended = 0;  // 1 + the record that freed it, or ended its process; 0: none
    std::uint32_t node = 0;
    std::uint32_t row = 0;
    std::uint32_t thread = 0;
    std::uint32_t process = 0;
    What what = What::kNothing;
    bool counted = true;
    bool freed = false;
    bool short_lived = false;
  };
  class Replay;

  /// Of time.
  void put_in_order();
  const std::vector<What>& kinds_of(std::uint32_t process);
  /// When records of a process were on again, after they were switched off; the greatest value: they stayed off.
  std::uint64_t on_again(std::uint32_t process);

  const reader::Trace& trace_;
  Parts* const parts_;
  std::unordered_map<std::uint32_t, std::vector<What>> kinds_;  // by process: of each function
  std::map<std::uint32_t, std::uint64_t> known_from_;           // the same: as MemoryUse::known_from
  std::vector<Record> records_;
  std::vector<std::size_t> runs_;  // where the records of each thread begin
  std::uint32_t threads_ = 0;
  bool keeps_ = false;
  MemoryUse use_;
};

}  // namespace karst::analysis
