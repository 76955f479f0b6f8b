// SPDX-License-Identifier: MIT
// Where collectors put what they learn: records in order of time, within a bound of memory, and the tasks they name.
//
// When the memory is full the oldest records go. What they said is folded into the state of every thread at the begin
// of what is kept, so that the states there are known.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "format/trace.h"
#include "reader/state_walk.h"
#include "reader/states.h"

namespace karst::kernel {

/// One thread at a time.
class RecordStore {
 public:
  /// `bytes`: of records; at least a block of them is kept.
  explicit RecordStore(std::size_t bytes);
  /// A copy can be taken from while the original goes on.
  RecordStore(const RecordStore& other);
  RecordStore& operator=(const RecordStore&) = delete;
  ~RecordStore() = default;

  /// Adds a record; those of one settle() to the next may come in any order.
  void add(const format::StateRecord& record) { pending_.push_back(record); }
  /// Adds a switch that a second source saw of a thread of the run. It names that thread alone: who came, or who left.
  /// It is kept if the first source lacks it.
  void add_beside(const format::StateRecord& record) { beside_.push_back(record); }
  /// The second source tells of what happens from then on; until now it was the first one.
  void begin_beside(std::uint64_t ticks) { beside_from_ = ticks; }
  /// All records before `ticks` have been added.
  void settle(std::uint64_t ticks);

  /// The thread is one of the run's, of process `pid`.
  void add_of_run(std::uint32_t tid, std::uint32_t pid);
  bool is_of_run(std::uint32_t tid) const;
  /// kStateNewThread records of the run's threads say so too, in order of time.
  /// The thread's name now; others are asked for their process if `look_up`.
  void name(std::uint32_t tid, std::string_view name, bool look_up);

  /// Everything kept from `begin` on. The store is empty then.
  reader::StateLog take(std::uint64_t begin, std::uint64_t end);

 private:
  static constexpr std::size_t kBlock = 8192;  // records
  using Block = reader::Column<format::StateRecord>;

  /// Switches of the first source that the second has not told of yet.
  struct Untold {
    bool came = false, left = false;
  };
  void keep(const format::StateRecord& record);
  void fill(std::uint64_t ticks);
  void note(const format::StateRecord& record);
  bool is_told(const format::StateRecord& beside);
  bool concerns_run(const format::StateRecord& record);
  void fold_oldest();

  std::size_t most_blocks_;
  Block pending_;
  std::size_t noted_ = 0;  ///< of pending_, from its begin
  Block beside_;
  std::uint64_t beside_from_ = 0;
  std::unordered_map<std::uint32_t, Untold> untold_;  ///< by tid
  std::deque<Block> blocks_;
  std::unordered_map<std::uint32_t, reader::Task> tasks_;
  std::unordered_map<std::uint32_t, std::uint16_t> last_cpu_;
  reader::StateWalk folded_;
  std::uint64_t folded_until_ = 0;
  std::uint64_t overwritten_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t migrations_ = 0;
};

}  // namespace karst::kernel
