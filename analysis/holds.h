// SPDX-License-Identifier: MIT
// Who had which lock when, by the records of `karst run --system locks=all` (format/lock.h), and what follows from it.
//
// hold       a thread has a lock: from behind the call that took it to before the call that let it go
// convoy     a lock passes from waiter to waiter, three times in a row or more: each waited before it was let go
// inversion  one lock was taken while another one was held, and the other way round elsewhere: threads that do both at
//            once wait for each other for ever. Not where a third lock, held both times, keeps them apart; not where
//            one of them would have given up, nor where both only share a lock
// ring       the same of three locks and more: each was taken while the one before it was held, and the first one while
//            the last one was. Only where so many threads did so, each another part
//
// A lock is an address, until a call initializes a lock there anew.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/locks.h"
#include "reader/trace.h"

namespace karst::analysis {

enum class HoldEnd : std::uint8_t {
  kReleased,
  kReleasedByOther,  ///< another thread let it go
  kThreadEnded,      ///< the thread ended, and had it
  kTraceEnded,       ///< it had it until the end of what is known
  kUnknown           ///< it was let go where nothing was recorded
};

struct LockHold {
  const reader::Thread* thread = nullptr;
  std::string_view kind;             ///< "mutex", "rwlock (shared)", "rwlock", "spinlock"
  std::uint64_t lock = 0;            ///< address
  std::uint32_t id = 0;              ///< of the lock, see above
  std::uint32_t taken_in = 0;        ///< function; 0: no traced one
  std::uint32_t released_in = 0;     ///< the same, with kReleased
  std::uint64_t begin = 0, end = 0;  ///< ticks; without kReleased and kReleasedByOther `end` is a bound
  std::uint64_t waited_from = 0;     ///< begin of the wait that it ended; 0: there was none
  bool shared = false;
  HoldEnd ended = HoldEnd::kReleased;
};

struct Convoy {
  std::vector<std::size_t> holds;    ///< in LockHolds::holds
  std::uint64_t begin = 0, end = 0;  ///< ticks: the first wait's begin, the last hold's end
};

/// Where `second` was taken by a thread that had `first`.
struct LockOrder {
  const reader::Thread* thread = nullptr;     ///< one that did so
  std::uint32_t first_in = 0, second_in = 0;  ///< functions that took them; 0: none that is traced
  std::uint64_t ticks = 0;                    ///< when the second one was taken, for the first time
  std::uint64_t times = 0;
  bool waits = false;  ///< it did not get it until the end
};
struct Inversion {
  std::uint32_t a = 0, b = 0;  ///< LockHolds::locks
  LockOrder a_first, b_first;
};

/// Each order is of one of as many threads.
struct LockRing {
  std::vector<std::uint32_t> locks;  ///< LockHolds::locks
  std::vector<LockOrder> orders;  ///< by lock: it was held while the next one, or after the last the first, was taken
};

struct LockIdentity {
  std::uint32_t process = 0;
  std::uint64_t address = 0;
  std::string_view kind;
};

struct LockHolds {
  std::vector<LockIdentity> locks;  ///< by LockHold::id
  std::vector<LockHold> holds;      ///< in order of begin
  std::vector<Convoy> convoys;      ///< by falling number of holds
  std::vector<Inversion> inversions;
  std::vector<LockRing> rings;
  bool rings_cut = false;  ///< there may be more: there are too many ways to look through
  bool stripped = false;   ///< there were records that no longer say which lock they are of: too little is known
};

/// Whether the trace has records of holds at all: `locks=all`.
bool has_holds(const reader::Trace& trace);

/// Collects the records of a trace's threads, one after the other. Memory: 32 bytes a record.
class HoldFinder {
 public:
  /// `trace` must outlive it.
  explicit HoldFinder(const reader::Trace& trace) : trace_(trace) {}

  /// `calls`: all of the thread's.
  void add(const reader::Thread& thread, const reader::Calls& calls);
  /// `waits`: of all threads that were added. Call once.
  LockHolds take(const std::vector<LockWait>& waits);

 private:
  enum class What : std::uint8_t { kNothing, kTaken, kReleased, kKept, kMade };
  struct Kind {
    What what = What::kNothing;
    std::string_view name;
  };
  struct Record {
    std::uint64_t ticks = 0;
    std::uint64_t lock = 0;
    std::uint32_t function = 0;  // that the thread was in
    std::uint32_t name = 0;      // of the record
    What what = What::kNothing;
    bool gives_up = false;
  };
  struct OfThread {
    const reader::Thread* thread = nullptr;
    std::vector<Record> records;
    std::uint64_t last_ticks = 0;
    bool whole = true;  // nothing is missing between its first event and its last one
    bool from_begin = true;
  };
  class Replay;

  const std::vector<Kind>& kinds_of(std::uint32_t process);

  const reader::Trace& trace_;
  std::map<std::uint32_t, std::vector<Kind>> kinds_;                                    // by process: of each function
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>> made_;  // by process, address: ticks
  std::vector<OfThread> threads_;
  bool stripped_ = false;
};

/// What is held of one address, whichever lock it was.
struct LockUse {
  std::uint64_t holds = 0, total = 0, longest = 0;  ///< ticks; of those whose end is known
  std::uint32_t longest_in = 0;                     ///< function that took it
  std::uint64_t unknown = 0;                        ///< holds whose end is not known
  std::vector<const Convoy*> convoys;               ///< by falling number of holds
};
/// By process and address. `functions`: only holds that began in these; null: all. Borrows from `holds`.
std::map<std::pair<std::uint32_t, std::uint64_t>, LockUse> use_of_locks(const LockHolds& holds,
                                                                        const FunctionSet* functions);

struct LockAndUse {
  Lock of;
  LockUse use;
};
/// As locks_of() has them, and behind those the ones that nobody waited for, by how long they were held. Borrows from
/// `names` and `holds`.
std::vector<LockAndUse> locks_with_use(const reader::Trace& trace, const LockNames& names,
                                       const std::vector<LockWait>& waits, const LockHolds& holds,
                                       const FunctionSet* functions);

/// Says who had a lock as a wait began where the lock itself does not say so (readers of a rwlock, spinlocks), and in
/// which function that thread took it.
void fill_in_holders(const LockHolds& holds, std::vector<LockWait>& waits);

}  // namespace karst::analysis
