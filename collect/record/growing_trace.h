// SPDX-License-Identifier: MIT
// The trace of a run that keeps every call (`--all`): it grows while the programs run, and can be read at any time.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "write/trace_writer.h"

namespace karst::collect {

/// Of all processes of a run. One thread at a time.
class GrowingTrace {
 public:
  /// Where the events of a pack lie, and how many sequence numbers it takes.
  struct Place {
    std::uint32_t thread = 0;
    std::uint32_t blocks = 0;
    std::uint64_t sequence = 0;
    std::uint64_t ticks = 0;
    std::uint64_t offset = 0;
    std::uint32_t size = 0;
  };

  /// What is done when there are events. Either may be empty.
  struct Events {
    std::function<void()> begins;  ///< before the file gets its name
    std::function<void()> begun;   ///< it has it, and can be read
  };

  /// `writer` must outlive it, and packs events from here on.
  explicit GrowingTrace(writing::TraceWriter& writer, Events events = {});
  GrowingTrace(const GrowingTrace&) = delete;
  GrowingTrace& operator=(const GrowingTrace&) = delete;

  /// The number of the next process in the file.
  std::uint32_t add_process();
  writing::TraceWriter& writer() { return writer_; }
  /// Events were added that nobody has but the file.
  void has_events() { has_events_ = true; }

  /// Whether it is time for flush(): soon after the begin, and then once in a second.
  bool is_flush_due() const { return Time::now() >= next_flush_; }
  /// The file, which gets its name once it has events, has what was added.
  void flush();
  /// Milliseconds after which arenas are to be looked at again; `any`: there was something to take this time.
  int look_again_after(bool any) {
    constexpr int kSlowest = 16;
    return look_again_ms_ = any ? 1 : std::min(2 * look_again_ms_, kSlowest);
  }
  /// Whether the file has its name.
  bool grows() const { return writer_.grows(); }
  /// Why nothing goes in any more; empty: it does.
  const std::string& failure() const { return failure_; }

  /// Packs of a process that are in the file; flush() brings those that wait.
  const std::vector<Place>& places(std::uint32_t process) const { return places_[process]; }
  bool read(const Place& place, std::vector<std::byte>& payload) const;

 private:
  using Time = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kFirstFlush{20};  // a disk that is full is found early
  static constexpr std::chrono::milliseconds kFlushEvery{1000};
  void add_clock_reading();
  void fail(std::string why);

  writing::TraceWriter& writer_;
  Events events_;
  Descriptor file_;
  std::vector<std::vector<Place>> places_;  // by process
  Time::time_point next_flush_ = Time::now() + kFirstFlush;
  Time::time_point next_reading_{};
  ClockPair begin_ = read_clock_pair();
  int look_again_ms_ = 1;
  bool has_events_ = false;
  std::string failure_;
};

}  // namespace karst::collect
