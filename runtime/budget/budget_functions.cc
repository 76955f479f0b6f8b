// SPDX-License-Identifier: MIT
#include "runtime/budget/budget_functions.h"

#include "runtime/recording/arena.h"
#include "runtime/system/memory.h"

namespace karst::runtime::culling {

using namespace format;

namespace {

/// The first of `count` ids from `first` on that `is_behind` is true for, which it is from some id on.
template <typename Test>
std::uint32_t first_behind(std::uint32_t first, std::uint32_t count, Test is_behind) {
  while (count != 0) {
    const std::uint32_t half = count / 2;
    if (is_behind(first + half)) {
      count = half;
    } else {
      first += half + 1;
      count -= half + 1;
    }
  }
  return first;
}

struct IdRange {
  std::uint32_t first;
  std::uint32_t end;
};

/// As the arena says, if there can be such a module; else nothing.
IdRange ids_of_module(std::uint32_t module) {
  if (module >= g_arena.module_count()) return {0, 0};
  const ArenaModule& m = g_arena.modules()[module];
  const std::uint32_t first = load(m.first_function);
  const std::uint32_t count = load(m.function_count);
  const std::uint32_t behind = g_arena.function_count() + 1;
  return first != 0 && first <= behind && count <= behind - first ? IdRange{first, first + count} : IdRange{0, 0};
}

}  // namespace

std::uint32_t owner_of(void*, std::uint32_t id) {
  if (id == 0 || id > g_arena.function_count()) return 0;
  const ArenaFunction* functions = g_arena.functions();
  if ((load(functions[id].flags) & kArenaFunctionTailExit) == 0) return id;
  // A module's functions by address, then its aliases.
  const IdRange m = ids_of_module(functions[id].module);
  if (id < m.first || id >= m.end) return 0;
  const std::uint32_t own = first_behind(m.first, id - m.first, [&](std::uint32_t i) {
    return (load(functions[i].flags) & kArenaFunctionTailExit) != 0 || functions[i].address >= functions[id].address;
  });
  return functions[own].address == functions[id].address ? own : 0;
}

Culler::Kind kind_of(void*, std::uint32_t function) {
  const std::uint32_t flags = load(g_arena.functions()[function].flags);
  if ((flags & kArenaFunctionOn) == 0 || (flags & kArenaFunctionCulled) != 0) return Culler::Kind::kGone;
  return (flags & (kArenaFunctionAlways | kArenaFunctionKeep)) != 0 ? Culler::Kind::kFixed : Culler::Kind::kFree;
}

void change_one(std::uint32_t function, bool culled) {
  std::uint32_t& flags = g_arena.functions()[function].flags;
  if (culled)
    __atomic_fetch_or(&flags, kArenaFunctionCulled, __ATOMIC_ACQ_REL);
  else
    __atomic_fetch_and(&flags, ~static_cast<std::uint32_t>(kArenaFunctionCulled), __ATOMIC_ACQ_REL);
}

void change(void*, std::uint32_t function, bool culled) {
  const ArenaFunction* functions = g_arena.functions();
  const IdRange m = ids_of_module(functions[function].module);
  const std::uint32_t end = m.end;
  if (function < m.first || function >= end) return change_one(function, culled);  // of -finstrument-functions
  const auto is_alias = [&](std::uint32_t id) { return (load(functions[id].flags) & kArenaFunctionTailExit) != 0; };
  const std::uint32_t aliases = first_behind(m.first, end - m.first, is_alias);
  const auto change_among = [&](std::uint32_t first, std::uint32_t behind) {
    const std::uint64_t address = functions[function].address;
    std::uint32_t id =
        first_behind(first, behind - first, [&](std::uint32_t i) { return functions[i].address >= address; });
    for (; id < behind && functions[id].address == address; ++id) change_one(id, culled);
  };
  change_among(m.first, aliases);
  change_among(aliases, end);
}

}  // namespace karst::runtime::culling
