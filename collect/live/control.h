// SPDX-License-Identifier: MIT
// Requests to a traced process by its control page (format/control.h): what `karst on` and `karst off` do.
//
// A requester that is killed at any point leaves the process as it was or as was wanted: single words are changed by
// atomic operations, and the next requester takes over what a dead one held.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "choice/function_filter.h"
#include "collect/arena/writer.h"
#include "collect/launch/attach.h"
#include "symbols/resolve.h"

namespace karst::collect {

/// What the control page says now.
struct ControlState {
  bool enabled = false;
  bool controllable = false;  ///< a request will be answered, as far as the process runs
  format::ControlThread thread = format::ControlThread::kNone;
  std::uint32_t functions = 0;  ///< that there are, second ids left out
  std::uint32_t chosen = 0;     ///< of them, that are wanted
  std::uint32_t patched = 0;    ///< of them, that are traced now
  std::uint32_t culled = 0;     ///< of them, that the budget keeps out
  std::uint64_t sites = 0;      ///< that are calls now
  std::uint32_t unpatchable_sites = 0;
  std::uint32_t given_back = 0;           ///< of the culled ones: for good
  std::optional<std::uint32_t> cost_ppm;  ///< estimated share of time that tracing costs
  std::uint32_t budget_ppm = 0;           ///< 0: none
  std::uint64_t switches = 0;             ///< ever made
  std::uint64_t last_patch_ns = 0;
  std::uint64_t dropped_messages = 0;
  std::uint64_t off_in_ticks = 0;  ///< until tracing goes off by itself; 0: it does not
};
ControlState control_state(const ArenaView& arena);

/// The right to make requests; one at a time has it. Movable; gives it back at its end.
class Requester {
 public:
  /// Waits for others for a while. Error: the process cannot be controlled and why; another one does not let go.
  static Result<Requester> take(Attached& target);
  Requester(Requester&& other) noexcept;
  Requester& operator=(Requester&&) = delete;
  ~Requester();

  /// Takes functions in or out of what is traced. Returns those whose choice it changed.
  std::vector<std::uint32_t> choose(const std::vector<std::uint32_t>& ids, bool on);
  void set_enabled(bool on);
  /// Functions that come later (libraries) are traced.
  void set_new_functions(bool on);
  /// What tracing may cost, in millionths of the time; 0: any. Error: why this process keeps to none.
  Status set_budget(std::uint32_t ppm);
  /// No budget leaves these functions out from now on.
  void keep(const std::vector<std::uint32_t>& ids);
  /// When `enabled` goes off by itself; 0: it does not.
  void set_off_at(std::uint64_t ticks);

  /// For what else is written before apply(): watches.
  ArenaWriter& writer() { return writer_; }

  /// Wakes the process and waits until it has done what is wanted. Error: it refused, ended, or does not answer within
  /// `limit`, and why; what is wanted stays so.
  Status apply(std::chrono::milliseconds limit);

 private:
  Requester(Attached& target, const ArenaWriter& writer) : target_(&target), writer_(writer) {}
  Attached* target_;  ///< null: moved from
  ArenaWriter writer_;
};

/// The process, whose functions have their demangled names, by symbol tables and their cache.
reader::Process with_names(const ArenaView& arena, const symbols::ResolveOptions& resolve);
/// Ids of the functions whose names the filter keeps, second ids among them. In order.
std::vector<std::uint32_t> matching_functions(const reader::Process& named, const choice::FunctionFilter& filter);

}  // namespace karst::collect
