// SPDX-License-Identifier: MIT
#include "runtime/patching/watch_sleds.h"

#include "runtime/recording/arena.h"
#include "runtime/system/assertion.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/patch_lock.h"
#include "runtime/values/handlers.h"
#include "runtime/values/values.h"
#include "runtime/watching/seams.h"
#include "runtime/watching/watch.h"

namespace karst::runtime {

void watch_sleds(Module& m) {
  KARST_ASSERT(holds_patching());
  if (!m.has_trampolines) return;
  const auto aim_of = [&m](std::uint32_t index) {
    const std::uint32_t id = m.first_id + index;
    const format::ArenaValueSpec* values = value_spec(id);
    return Trampolines::Aim{is_watching() && is_watched(id), values != nullptr && values->arguments != 0,
                            values != nullptr && values->returned != 0, is_handled(id), m.functions.late(index)};
  };
  bool any = m.trampolines.has_aimed();
  for (std::uint32_t i = 0; i < m.functions.count() && !any; ++i) any = !aim_of(i).is_plain();
  if (!any) return;
  if (!m.trampolines.begin_change()) {
    static bool s_said;
    if (!s_said)
      Message().text(
          "no call is kept (slowest, over), no value noted and no handler called: the system does not let code be "
          "changed");
    s_said = true;
    return;
  }
  for (std::uint32_t i = 0; i < m.functions.count(); ++i) {
    const Trampolines::Aim aim = aim_of(i);
    if (aim.is_plain() && !m.trampolines.has_aimed()) continue;
    m.trampolines.aim(i, aim);
    // What a tail call returns is its callee's to say.
    const std::uint32_t alias = m.functions.alias(i);
    if (alias == FunctionTable::kNone) continue;
    for (std::uint32_t n = 0; n < FunctionTable::kAliases; ++n)
      m.trampolines.aim(alias + n, {aim.watched, false, false, aim.handled, false});
  }
  m.trampolines.end_change();
}

void watch_sleds() {
  const std::uint32_t count = load(g_module_count);
  for (std::uint32_t i = 0; i < count; ++i) watch_sleds(g_modules[i]);
}

bool make_trampolines(Module& m) {
  if (!m.has_trampolines && id_count(m) != 0) {
    m.has_trampolines = m.trampolines.create(m.reach_begin, m.reach_end, m.first_id, m.functions.count(),
                                             m.functions.alias_count(), &m.functions);
    watch_sleds(m);
  }
  return m.has_trampolines || id_count(m) == 0;
}

bool is_called_by_address(std::uint32_t id) {
  const std::uint32_t module = g_arena.functions()[id].module;
  if (module >= load(g_module_count)) return false;
  const Module& m = g_modules[module];
  return m.finstrument && id - m.first_id >= id_count(m);
}

}  // namespace karst::runtime
