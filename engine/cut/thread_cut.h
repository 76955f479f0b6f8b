// SPDX-License-Identifier: MIT
// A part of one thread's history as blocks of a trace of its own (cut.h): what the thread was inside when the range
// began, the range's events as they are, and the ends of what runs on behind it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "analysis/values.h"
#include "engine/index/scope.h"
#include "format/note.h"
#include "reader/open_state.h"
#include "write/trace_writer.h"

namespace karst::engine {

class ThreadCut {
 public:
  /// What it refers to must outlive it.
  ThreadCut(const Scope& scope, const Scope::Part& part);

  /// As the cut's table has it.
  const reader::Thread& thread() const { return thread_; }
  /// Blocks, in order; sets those elements of `seen` true, by id, whose function occurs.
  void write(writing::TraceWriter& writer, std::vector<bool>& seen) const;

 private:
  /// A word of a block.
  struct Place {
    std::size_t block = 0;
    std::size_t event = 0;
  };
  class Sink;

  /// Good until those of another block are asked for.
  std::span<const format::Event> events_of(std::size_t block) const { return read_(blocks_[block]).events; }
  Place first_at(std::uint64_t ticks, Place from) const;
  bool is_boundary(std::size_t block) const { return blocks_[block].sequence != blocks_[block - 1].next_sequence; }
  std::vector<reader::StoredBlock> segment_before(Place end) const;
  void find_state();
  void find_values(const ThreadIndex& thread);
  Place with_values(Place at) const;
  std::uint32_t row_of(const reader::OpenState::Call& call) const;
  void put_values(Sink& sink, std::uint64_t ticks, const reader::Note* note) const;
  void before(Sink& sink) const;
  void find_aside();
  void stacks_aside(Sink& sink, std::uint64_t ticks) const;
  void put_places(Sink& sink, std::size_t depth, std::uint64_t ticks) const;
  void within(Sink& sink) const;
  static std::vector<format::Event> without_jumps(std::span<const format::Event> events, std::set<std::uint64_t>& gone);
  void after(Sink& sink) const;
  static void put_jump(Sink& sink, std::uint64_t ticks, const reader::OpenState& state, std::size_t depth);
  static void put_switch(Sink& sink, std::uint64_t ticks, const reader::OpenState& state, std::size_t depth);

  const reader::Trace& trace_;
  const reader::Process& process_;
  const Scope::Part& part_;
  mutable reader::EventReader read_;
  std::span<const reader::StoredBlock> blocks_;
  reader::Thread thread_;
  Place from_;              // the first event of the range
  Place to_;                // the first one behind it
  bool continues_ = false;  // there is something before the range that its events go on from
  bool whole_ = false;      // its history is known from the thread's start
  bool stacks_ = false;     // and it switched stacks, or noted places to jump to
  reader::OpenState state_;
  std::vector<reader::OpenState::Aside> aside_;  // what the cut needs of them
  std::shared_ptr<const reader::Calls> noted_;   // what has values_' notes
  std::optional<analysis::CallValues> values_;   // nothing: those that the range cuts have none
  std::set<std::uint64_t> gone_;                 // places that the range jumps to, and that do not stand
};

}  // namespace karst::engine
