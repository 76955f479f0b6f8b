// SPDX-License-Identifier: MIT
#include "runtime/modules/arrivals.h"

#include "format/arena.h"
#include "runtime/modules/modules.h"
#include "runtime/process/session.h"
#include "runtime/recording/arena.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {
namespace {

bool g_keeps_all[format::kArenaModules];  // modules of which the session leaves out nothing

/// That of the function's module; that of the last one, which nobody comes to, if the arena was scribbled over.
bool& keeps_all(std::uint32_t id) {
  const std::uint32_t module = g_arena.functions()[id].module;
  return g_keeps_all[module < format::kArenaModules ? module : format::kArenaModules - 1];
}

}  // namespace

bool is_to_be_asked(std::uint32_t id) { return has_session() && !load(keeps_all(id)); }

void ask_session_about(std::uint32_t id) {
  if (!report_arrival(module_count(), id, 1)) store(keeps_all(id), true);
  apply_watches(false);
  std::uint32_t& flags = g_arena.functions()[id].flags;
  if ((load(flags) & format::kArenaFunctionOn) == 0)
    __atomic_and_fetch(&flags, ~std::uint32_t{format::kArenaFunctionSwitchedOn}, __ATOMIC_ACQ_REL);
}

}  // namespace karst::runtime
