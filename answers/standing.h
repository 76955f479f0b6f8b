// SPDX-License-Identifier: MIT
// The calls that threads are in: of a process that runs or hangs, a core or a trace.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answers/relation.h"

namespace karst::answers {

struct StandingCallRow {
  const reader::Function& function;
  std::uint64_t open_ns;  ///< for so long
  bool since_earlier;     ///< its begin is before the kept history
};

struct StandingThreadRow {
  std::uint32_t tid;
  std::string name;
  std::string state;                    ///< what it does now, or did last, in words; empty: not known
  std::optional<std::uint32_t> holder;  ///< the thread that it seems to wait for
  bool has_history;                     ///< it was in traced calls before
  std::vector<StandingCallRow> calls;   ///< the innermost first
};

struct StandingProcessRow {
  std::uint32_t pid;
  std::string_view name;
  std::optional<std::string_view> crash;     ///< what ended it
  std::optional<std::uint32_t> crashed_tid;  ///< where
  std::vector<StandingThreadRow> threads;
};

const Relation& standing_processes();

}  // namespace karst::answers
