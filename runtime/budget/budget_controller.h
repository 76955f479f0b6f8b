// SPDX-License-Identifier: MIT
// The budget's decisions, apart from the process that they are about: which functions to leave out when tracing costs
// more than it may, and which to bring back when there is room. Pure: it knows shares of time and samples of events.
//
// share     of the time that passes, in millionths (ppm): what tracing costs a thread, or the process.
// load      the same cost over the time that would pass without tracing. What is left when some functions are culled is
//           a share of a program that has become faster by that, so predictions are made in loads.
// credit    cost that may still be spent: it grows at kFill of the budget and holds kCredit of time at the full budget.
//           So the cost of any second stays under the budget, a short burst costs nobody his functions, and a hot
//           loop has used its credit up in some 10 ms.
// idle      what sleds of culled functions cost as NOPs, next to nothing each, but these are the calls that there are
//           most of: a hundredth of what tracing them would, through stubs up to a fourth. It is of the budget, too.
// ended     culled for good: where stubs alone take more than their part of the budget, those of the functions that
//           are called most go.
// culled    kept out by the budget. What goes is what has most events for what it tells: a call tells as much as it
//           is long (mean), and more if some calls are much longer than others (longest).
// back-off  how long a culled function stays out before its load is believed to be half of what it was; it comes
//           back when that fits. If that was wrong it goes at once and stays out for twice as long.
//
// Threads: one, the maintenance process. No memory but what create() takes.
#pragma once
#include <cstdint>

#include "runtime/budget/budget_sample.h"

namespace karst::runtime {

inline constexpr std::uint32_t kMillion = 1'000'000;
inline constexpr std::uint64_t kMillisecond = 1'000'000;  // in ns, as all times here
inline constexpr std::uint64_t kSecond = 1'000 * kMillisecond;

/// What tracing costs one thread, or the whole process.
class Meter {
 public:
  static constexpr std::uint64_t kShort = 12 * kMillisecond;
  static constexpr std::uint64_t kCredit = 60 * kMillisecond;

  /// `cost` of the last `elapsed`. `budget` in ppm; 0: there is none, and no credit is kept.
  void add(std::uint64_t elapsed, std::uint64_t cost, std::uint32_t budget);
  /// Functions have come or gone: what was measured before does not tell what comes. The credit does.
  void forget_rate() { known_ = 0; }
  /// The thread is new, or the budget: a fourth of the credit that it can hold.
  void start(std::uint32_t budget);

  std::uint32_t recent() const { return recent_; }  ///< over some 12 ms
  std::uint32_t second() const { return second_; }  ///< over some second
  std::int64_t credit() const { return credit_; }
  bool is_over(std::uint32_t budget) const;
  /// What culling is to aim at: target_of(), or half of that where a fourth of what the credit can hold is owed.
  std::uint32_t target(std::uint32_t budget) const;
  /// Half of what it can hold.
  bool has_room(std::uint32_t budget) const;
  /// How long the credit lasts if all goes on as it did; 0 when there is none, or when it does not end.
  std::uint64_t credit_lasts(std::uint32_t budget) const;

 private:
  bool is_in_debt(std::uint32_t budget) const;

  std::uint32_t recent_ = 0;
  std::uint32_t second_ = 0;
  std::uint64_t known_ = 0;  // time that recent_ is about, up to kShort
  std::uint64_t age_ = 0;    // the same for second_
  std::int64_t credit_ = 0;  // ns
};

/// What a budget is aimed at, in parts of it: the rest is for what is measured late, or wrongly.
constexpr std::uint32_t fill_of(std::uint32_t budget) { return budget / 10 * 7; }
constexpr std::uint32_t target_of(std::uint32_t budget) { return budget / 10 * 6; }
/// What tracing itself may cost where `idle` goes to NOPs: a fourth of the budget at least.
constexpr std::uint32_t less_idle(std::uint32_t budget, std::uint32_t idle) {
  return idle < budget / 4 * 3 ? budget - idle : budget - budget / 4 * 3;
}
/// Between share and load.
std::uint64_t load_of_share(std::uint32_t share);

class Culler {
 public:
  static constexpr std::uint32_t kMostCulled = 1 << 14;
  static constexpr std::uint64_t kFirstBackOff = 250 * kMillisecond;
  static constexpr std::uint64_t kLastBackOff = 120 * kSecond;
  /// A call this long is worth what it costs.
  static constexpr std::uint64_t kLongCall = 100'000;  // ns

  enum class Kind {
    kFree,
    kFixed,  ///< may not be culled
    kGone,   ///< is culled, or off: its events in a sample are the last ones
  };
  using KindOf = Kind (*)(void* context, std::uint32_t function);
  /// Told of each function that goes or comes back; kind_of() is to say so from then on.
  using Change = void (*)(void* context, std::uint32_t function, bool culled);
  struct Idle {
    std::uint32_t part;  ///< what an event costs while the function is off, in 1024ths of what it does on
    bool can_end;        ///< and it need not: it can go for good
  };
  using IdleOf = Idle (*)(void* context, std::uint32_t function);

  /// Once. False when memory is short.
  bool create();
  /// In a forked child: knows nothing any more.
  void reset();
  void set_context(KindOf kind_of, Change change, IdleOf idle_of, void* context) {
    kind_of_ = kind_of, change_ = change, idle_of_ = idle_of, context_ = context;
  }
  /// Clock ticks of a sample's durations in 1024 ns.
  void set_ticks_per_1024ns(std::uint64_t ticks) { ticks_per_1024ns_ = ticks == 0 ? 1 : ticks; }

  /// Culls until a thread that `sample` is of, whose tracing takes `share`, would be at `target`. False when what may
  /// be culled is not enough.
  bool relieve(const EventSample& sample, std::uint32_t share, std::uint32_t target, std::uint64_t now);
  /// Brings functions back that are believed to fit into `room` (ppm), those that cost least first. Returns how many.
  std::uint32_t bring_back(std::uint32_t room, std::uint64_t now);
  /// A culled function is to be kept from now on.
  void release(std::uint32_t function);
  /// All of them: there is no budget any more.
  void bring_all_back();
  /// A function that was culled by another controller, of which nothing is known: fork.
  void adopt(std::uint32_t function, std::uint64_t now);

  std::uint32_t culled() const { return culled_; }
  /// What the sleds of all that is culled cost (ppm). Of functions that are culled for the sake of several threads it
  /// is the sum: no less than any thread's.
  std::uint32_t idle_share() const { return idle_ < kMillion ? static_cast<std::uint32_t>(idle_) : kMillion; }
  /// Ends functions, those first that cost most while they are off, until the others cost no more than `most` (ppm).
  /// Writes up to `room` of them to `ended`, in order; returns how many. Nothing is known of them from then on.
  std::uint32_t end_heaviest(std::uint32_t most, std::uint32_t* ended, std::uint32_t room);
  /// Functions that came back and are not known to be worth it yet.
  bool on_trial(std::uint64_t now) const { return now < trial_until_; }
  static constexpr std::uint64_t kTrial = 30 * kMillisecond;

 private:
  struct Record {
    std::uint32_t function;
    std::uint32_t culled;  // place in culled_list_, + 1; 0: it is on
    std::uint64_t load;    // when it was culled, ppm
    std::uint32_t idle;    // what it costs since then, ppm
    bool can_end;
    std::uint64_t changed;   // when it was culled, or came back
    std::uint64_t back_off;  // 0: was never culled
    std::uint64_t longest;   // ns
  };
  struct Candidate {
    std::uint64_t score;
    std::uint32_t place;  // in the sample or among the records
  };

  Record* record_of(std::uint32_t function, bool make);
  void cull(std::uint32_t function, std::uint64_t load, std::uint64_t longest, std::uint64_t now);
  std::uint64_t score_of(const FunctionSample& f, std::uint64_t longest) const;
  std::uint64_t believed_load(const Record& r, std::uint64_t now) const;
  void put_into_list(Record& record);
  void take_out_of_list(Record& record);
  void bring_back(Record& record);

  Record* records_ = nullptr;  // hashed by function; kept for as long as the process lives
  bool are_real_ = false;
  Candidate* candidates_ = nullptr;
  std::uint32_t* culled_list_ = nullptr;  // of places among the records
  std::uint32_t listed_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t culled_ = 0;
  std::uint64_t idle_ = 0;  // of the functions in the list, ppm
  std::uint64_t trial_until_ = 0;
  std::uint64_t next_trial_ = 0;
  std::uint64_t ticks_per_1024ns_ = 1024;
  KindOf kind_of_ = nullptr;
  Change change_ = nullptr;
  IdleOf idle_of_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace karst::runtime
