#include "runtime/hooks/watch_sleds.h"

#include "runtime/recording/arena.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/patch_lock.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

void watch_sleds(Module& m) {
  KARST_ASSERT(holds_patching());
  if (!m.has_trampolines || !is_watching()) return;
  bool any = m.trampolines.has_watched();
  for (std::uint32_t i = 0; i < m.functions.count() && !any; ++i) any = is_watched(m.first_id + i);
  if (!any) return;
  if (!m.trampolines.begin_change()) {
    static bool s_said;
    if (!s_said) Message().text("no call is kept (slowest, over): the system does not let code be changed");
    s_said = true;
    return;
  }
  for (std::uint32_t i = 0; i < m.functions.count(); ++i) {
    const bool watched = is_watched(m.first_id + i);
    if (!watched && !m.trampolines.has_watched()) continue;
    m.trampolines.aim(i, watched);
    const std::uint32_t alias = m.functions.alias(i);
    if (alias != FunctionTable::kNone) m.trampolines.aim(alias, watched);
  }
  m.trampolines.end_change();
}

void watch_sleds() {
  const std::uint32_t count = load(g_module_count);
  for (std::uint32_t i = 0; i < count; ++i) watch_sleds(g_modules[i]);
}

bool is_called_by_address(std::uint32_t id) {
  const std::uint32_t module = g_arena.functions()[id].module;
  if (module >= load(g_module_count)) return false;
  const Module& m = g_modules[module];
  return m.finstrument && id - m.first_id >= id_count(m);
}

}  // namespace karst::runtime
