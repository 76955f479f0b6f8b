// SPDX-License-Identifier: MIT
// What a running process's arena says now, for `karst ps` and `top`.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "answers/relation.h"
#include "collect/launch/attach.h"
#include "collect/live/control.h"
#include "reader/model.h"
#include "symbols/resolve.h"

namespace karst::cli {

struct LiveFacts {
  collect::ControlState control;
  std::uint32_t threads = 0;           ///< that run and have made traced calls
  std::uint64_t calls_per_second = 0;  ///< over the last second, as far as its blocks are there and were read
  std::uint64_t history_ns = 0;        ///< from the oldest event that is kept to now
  std::uint64_t memory = 0;            ///< bytes of blocks in use
  std::uint64_t overwritten = 0;
  std::uint64_t lost = 0;
  std::uint64_t off_in_ns = 0;
  double read_share = 1;                ///< of the last second's blocks
  std::vector<std::string> left_alone;  ///< as left_alone() has it
};
LiveFacts live_facts(const collect::Attached& target);

/// The TSC's rate, by a process's start and now.
Clock live_clock(const collect::Attached& target);

/// Functions of a process that runs, with names that are looked up when it has more of them than before.
class LiveNames {
 public:
  /// `arena` must outlive it.
  LiveNames(const collect::ArenaView& arena, symbols::ResolveOptions options)
      : arena_(arena), options_(std::move(options)) {}
  /// Its name is printable, and "?" where an event names a function that is not there. Valid until the next call.
  const reader::Function& function(std::uint32_t id);
  const std::string& of(std::uint32_t id) { return function(id).name; }

 private:
  void learn();

  const collect::ArenaView& arena_;
  const symbols::ResolveOptions options_;
  reader::Process process_;
};

/// "0.31%" or "?".
std::string cost_text(const collect::ControlState& control);

struct LiveRow {
  const collect::Attached& target;
  LiveFacts facts;
};
const answers::Relation& live_processes();

}  // namespace karst::cli
