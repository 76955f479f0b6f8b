// Keeps the slowest calls of functions, and calls over a threshold, with what all threads did meanwhile.
//
// The program does nothing for it: its arena is read from outside, all new events within some milliseconds, and calls
// of the functions watched are put together as they end. The blocks of a call that is to be kept are copied out of the
// arena before they are recycled. If a program makes events faster than they can be read, some are missed; then that
// is said.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collect/recording.h"
#include "reader/model.h"
#include "reader/result.h"
#include "symbols/function_filter.h"
#include "symbols/resolve.h"

namespace karst::collect {

/// One --slowest or --over.
struct WatchRule {
  std::string text;  ///< as it was given
  symbols::FunctionFilter functions;
  std::uint64_t over_ns = 0;  ///< 0: the slowest ones
  std::uint32_t most = 0;     ///< so many of each function

  /// `REGEX[:N]`; N is 5 if it is not given.
  static Result<WatchRule> slowest(std::string_view text);
  /// `REGEX:TIME[:N]`, as `serve.*:20ms`; N is 100 if it is not given.
  static Result<WatchRule> over(std::string_view text);
};

struct WatchOptions {
  std::vector<WatchRule> rules;
  std::uint64_t margin_ns = 0;                      ///< kept on both sides of a call
  std::uint64_t memory = std::uint64_t{256} << 20;  ///< for blocks that are kept
};

/// Of one process. One thread at a time.
class Watch {
 public:
  Watch(const WatchOptions& options, const symbols::ResolveOptions& resolve);

  /// Reads what is new. Call it every few milliseconds.
  void look(History& history);
  /// After the last look: the moments that were kept, in order of time, go into the process's trace.
  void finish(RecordedProcess& process);
  /// Functions that some rule watches.
  std::size_t functions() const { return watched_.size(); }
  /// Blocks that were overwritten before they were read.
  std::uint64_t missed_blocks() const { return missed_; }

 private:
  struct Open {
    std::uint32_t function;
    std::uint64_t begin;
  };
  struct Thread {
    std::uint64_t next_sequence = 0;
    std::vector<Open> open;                                 ///< calls of watched functions
    std::unordered_map<std::uint64_t, std::size_t> places;  ///< of setjmp: how many were open
    std::uint64_t last_end = 0;                             ///< calls that ended until then have been judged
    bool begun = false;
    std::uint64_t gap_before = 0;  ///< blocks up to this one were not there at the last look
  };
  struct Kept {
    std::size_t rule;
    std::uint32_t function;
    std::uint32_t thread;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t from;
    std::uint64_t to;
    std::uint64_t whole_from;
    bool gave_up;
    bool waits;  ///< for the margin behind it
  };
  struct Ended {
    std::uint32_t function;
    std::uint32_t thread;
    std::uint64_t begin;
    std::uint64_t end;
  };

  void find_functions(const History& history);
  void read(Thread& thread, std::uint32_t index, std::span<const format::Event> events, std::uint64_t block_ticks,
            bool whole, std::vector<Ended>& ended);
  void judge(const Ended& call, History& history);
  void keep(Kept kept, History& history);
  void complete(History& history, bool all);
  std::uint64_t to_ticks(std::uint64_t ns) const;

  const WatchOptions& options_;
  const symbols::ResolveOptions& resolve_;
  reader::ClockPair begin_;
  std::uint64_t ticks_per_second_ = 1;
  std::uint32_t known_functions_ = 0;
  std::vector<std::uint32_t> watched_id_;  ///< by id: the function's own id, 0: not watched
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> watched_;  ///< function's id: rules
  std::unordered_map<std::uint32_t, Thread> threads_;
  std::vector<Kept> kept_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> given_up_;  ///< over the number that a rule allows
  std::uint64_t missed_ = 0;
};

}  // namespace karst::collect
