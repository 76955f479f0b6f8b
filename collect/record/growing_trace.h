// SPDX-License-Identifier: MIT
// The trace of a run that keeps every call (`--all`): it grows while the programs run, and can be read at any time. It
// may be several files, one after the other (`--rotate`), each a whole trace of its time.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "reader/model.h"
#include "reader/samples.h"
#include "reader/states.h"
#include "reader/usage.h"
#include "write/trace_writer.h"

namespace karst::collect {

/// When a file ends and the next one begins; 0: never by that.
struct Rotation {
  std::uint64_t bytes = 0;  ///< it has so many
  std::chrono::nanoseconds time{0};
  bool any() const { return bytes != 0 || time.count() != 0; }
};

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

  /// What is done as files begin and end. Each may be empty.
  struct Events {
    std::function<void()> begins;  ///< a file has events, and gets its name now
    std::function<void()> begun;   ///< it has it, and can be read
    /// A file has ended: it gets another name. Gives what the next one is written by.
    std::function<Result<writing::TraceWriter>()> next;
    /// The one that ended is whole. In a thread of its own, and before the next one ends.
    std::function<void()> whole;
  };

  /// `writer` must outlive it, and packs events from here on. With a rotation it is assigned to for each file.
  explicit GrowingTrace(writing::TraceWriter& writer, Events events = {}, const Rotation& rotation = {});
  ~GrowingTrace() { finish_older(); }
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
  /// Adds to a file that ends what else is known of its time, in ticks.
  using AddRest = std::function<void(writing::TraceWriter&, std::uint64_t from, std::uint64_t to)>;
  void complete_files_by(AddRest add) { add_rest_ = std::move(add); }
  /// What lies before the file is left out, once there are older ones.
  void leave_out_older(reader::StateLog& states, reader::SampleLog& samples, reader::UsageLog& usage) const;
  bool rotates() const { return rotation_.any(); }
  /// From the first process on: processes wait until what they recorded is taken, and lose none of it.
  void block() { blocks_ = true; }
  bool blocks() const { return blocks_; }
  /// Of a process whose last events are taken: what its threads waited for that, in ticks.
  void add_wait(std::uint64_t ticks) { waited_ += ticks; }
  std::chrono::nanoseconds waited() const;
  /// Whether it is time for end_file() and begin_file(), before and after which the processes say the same to theirs.
  bool is_file_full() const;
  /// The file becomes a whole trace, and all processes are to be added anew.
  void end_file();
  /// Files that have ended.
  std::size_t files() const { return files_; }
  /// Waits until they are whole. What went wrong with them is among their problems then.
  void finish_older();
  const std::vector<reader::Problem>& problems() const { return problems_; }
  /// Ticks at which the file began.
  std::uint64_t begin() const { return begin_.ticks; }
  /// Ticks from which on calls that are open as it begins have their true begins: some seconds before begin().
  std::uint64_t earliest() const { return std::max(first_.ticks, begin_.ticks - to_ticks(kBefore)); }
  std::uint64_t to_ticks(std::chrono::nanoseconds time) const;
  /// Whether the file has its name.
  bool grows() const { return writer_.grows(); }
  /// Why nothing goes in any more; empty: it does.
  const std::string& failure() const { return failure_; }

  /// Packs of a process that are in the file; flush() brings those that wait.
  const std::vector<Place>& places(std::uint32_t process) const { return places_[process]; }
  bool read(const Place& place, std::vector<std::byte>& payload) const;

 private:
  using Time = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kBefore{10};
  static constexpr std::chrono::milliseconds kFirstFlush{20};  // a disk that is full is found early
  static constexpr std::chrono::milliseconds kFlushEvery{1000};
  void begin_file();
  void finish_in_background(writing::TraceWriter writer);
  void pack();
  void add_clock_reading();
  void fail(std::string why);

  writing::TraceWriter& writer_;
  Events events_;
  AddRest add_rest_;
  Rotation rotation_;
  Time::time_point file_began_ = Time::now();
  std::size_t files_ = 0;
  std::thread finishing_;
  std::atomic<bool> is_finishing_ = false;
  std::vector<reader::Problem> problems_;  // finishing_'s until it is joined
  Descriptor file_;
  std::vector<std::vector<Place>> places_;  // by process
  Time::time_point next_flush_ = Time::now() + kFirstFlush;
  Time::time_point next_reading_{};
  const ClockPair first_ = read_clock_pair();
  ClockPair begin_ = first_;
  int look_again_ms_ = 1;
  bool has_events_ = false;
  bool blocks_ = false;
  std::uint64_t waited_ = 0;  // ticks
  std::string failure_;
};

}  // namespace karst::collect
