// SPDX-License-Identifier: MIT
// Waits for locks: which lock, for how long, who waited in which function, and who had the lock, doing what. The zones
// are those of libkarst-locks.so (format/lock.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/selection.h"
#include "analysis/waits.h"
#include "reader/trace.h"

namespace karst::analysis {

struct LockWait {
  const reader::Thread* thread = nullptr;
  std::uint32_t row = 0;       ///< of the wait, in its thread's calls
  std::uint32_t zone = 0;      ///< function of the wait; its name says of which kind it is
  std::uint32_t caller = 0;    ///< function that waited; 0: no traced one
  std::uint64_t lock = 0;      ///< address
  std::uint32_t holder = 0;    ///< tid of who had it as the wait began; 0: not known
  std::uint32_t owners = 0;    ///< how many had it then, as far as holds tell (analysis/holds.h)
  CallOf held_in;              ///< what that thread did then; `thread` null: it is not in the trace
  std::uint32_t taken_in = 0;  ///< function in which the holder took it; 0: none that is traced, or not known
  bool taken_known = false;    ///< `taken_in` says something (holds are recorded: analysis/holds.h)
  std::uint64_t begin = 0;     ///< ticks
  std::uint64_t duration = 0;
  bool open = false;  ///< its end, or its begin, is not known
};

/// "mutex", of a function that is a wait; empty: it is none.
std::string_view lock_kind(const reader::Trace& trace, std::uint32_t process, std::uint32_t function);
/// Whether one thread has such a lock until it lets go: a mutex, not a condition.
bool has_holder(std::string_view kind);

/// Names that programs gave their locks.
class LockNames {
 public:
  explicit LockNames(const reader::Trace& trace);
  /// Empty: it has none.
  std::string_view of(std::uint32_t process, std::uint64_t lock) const;

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> names_;
};

/// The waits among a thread's calls, in order of their begin; of those functions that wait, if `functions` is not null.
std::vector<LockWait> lock_waits(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                                 const FunctionSet* functions);
/// Fills in `held_in` of all. `calls_of` is asked for each thread at most once.
void find_holders(const reader::Trace& trace, std::vector<LockWait>& waits, const CallsOf& calls_of);

/// Finds the wait for a lock that a thread was in. Use from one thread. `trace` must outlive it.
class LockWaitFinder {
 public:
  explicit LockWaitFinder(const reader::Trace& trace);
  ~LockWaitFinder();
  LockWaitFinder(const LockWaitFinder&) = delete;
  LockWaitFinder& operator=(const LockWaitFinder&) = delete;

  /// The longest in [begin, end), by what of it lies inside, of locks that one thread has; null: there is none.
  const LockWait* longest(const reader::Thread& thread, std::uint64_t begin, std::uint64_t end);
  /// Who had the lock as the wait began; null: not known.
  const reader::Thread* holder(const LockWait& wait) const;

 private:
  const reader::Trace& trace_;
  struct Threads;
  std::unique_ptr<Threads> threads_;
  std::map<const reader::Thread*, std::vector<LockWait>> waits_;
};

/// The waits of one function for locks that another one had.
struct LockPair {
  std::uint32_t waiter = 0;                         ///< function; 0: none that is traced
  std::uint32_t holder = 0;                         ///< what the holder was in as the wait began; 0 as above
  bool holder_known = false;                        ///< false: `holder` says nothing
  std::uint32_t taker = 0;                          ///< what the holder took it in; 0 as above
  bool taker_known = false;                         ///< false: `taker` says nothing
  std::uint64_t waits = 0, total = 0, longest = 0;  ///< ticks
};
struct Lock {
  std::uint32_t process = 0;
  std::uint64_t address = 0;
  std::string_view kind;
  std::string_view name;  ///< empty: none
  std::uint64_t waits = 0, total = 0, longest = 0;
  std::vector<LockPair> pairs;  ///< by falling total
};
/// By falling total, those with holders first: that a thread waits for work is no trouble. Names are borrowed.
std::vector<Lock> locks_of(const reader::Trace& trace, const LockNames& names, const std::vector<LockWait>& waits);

}  // namespace karst::analysis
