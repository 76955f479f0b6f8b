// SPDX-License-Identifier: MIT
// Waits (analysis/waits.h) in words, and who was waited for. Texts are fit to be shown: names without parameters,
// nothing in them that a terminal would obey.
#pragma once
#include <optional>
#include <string>

#include "analysis/kept_off.h"
#include "analysis/outliers.h"
#include "analysis/waits.h"

namespace karst::words {

struct ToldWait {
  analysis::Wait of;
  analysis::KeptOff kept;  ///< who had the CPU meanwhile
  std::string words;       ///< "blocked in futex, woken by 4711 worker in Queue::push"
};

struct ToldLink {
  analysis::ChainLink of;
  std::optional<ToldWait> wait;  ///< its own
  std::string words;             ///< "meanwhile 812 server in Cache::lookup > Disk::flush: 3 ms blocked in ..."
};

/// Keeps a reference to the trace. Use from one thread.
class WaitTeller {
 public:
  /// `calls_of`: of those who had the CPU.
  WaitTeller(const reader::Trace& trace, analysis::CallsOf calls_of);

  ToldWait tell(const analysis::Wait& wait) const;
  ToldLink tell(analysis::ChainLink link) const;
  const analysis::KeptOffFinder& kept_off() const { return kept_off_; }
  /// "812 server in Cache::lookup > Disk::flush"; `innermost`: the last function alone.
  std::string who(const analysis::ChainLink& link, bool innermost) const;

 private:
  std::string name(const reader::Thread& thread, std::uint32_t function) const;
  std::string time(std::uint64_t ticks) const;

  const reader::Trace& trace_;
  const analysis::KeptOffFinder kept_off_;
};

}  // namespace karst::words
