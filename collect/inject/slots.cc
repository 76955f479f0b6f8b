// SPDX-License-Identifier: MIT
#include "collect/inject/slots.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

namespace karst::collect {
namespace {

constexpr std::string_view kUnwinder = "_Unwind_SetIP";
constexpr std::array<std::string_view, 11> kNames = {"setjmp",     "_setjmp",     "__sigsetjmp",   "longjmp",
                                                     "_longjmp",   "siglongjmp",  "__longjmp_chk", "getcontext",
                                                     "setcontext", "swapcontext", kUnwinder};

constexpr std::uint64_t kMostRead = std::uint64_t{512} << 20;  // bytes of modules' tables; a process may lie

/// What the name means, in one process.
struct Meaning {
  std::uint64_t theirs = 0;  ///< libc's, or libgcc_s's
  std::uint64_t ours = 0;    ///< libkarst's
  bool is_only_one = true;   ///< no other module has a function of this name
};

struct Loaded {
  std::string path;
  ForeignModule module;
  /// It lies in code of the module, or in private data.
  bool has(const std::vector<Mapping>& mappings, std::uint64_t address, bool is_code) const {
    return std::any_of(mappings.begin(), mappings.end(), [&](const Mapping& m) {
      return m.path == path && m.rights.size() > 3 && (m.rights[2] == 'x') == is_code && m.rights[3] == 'p' &&
             address >= m.begin && address < m.end;
    });
  }
};

/// Those of the program's own namespace.
std::vector<Loaded> loaded_in(const ForeignMemory& memory, const std::vector<Mapping>& mappings) {
  std::vector<Loaded> found;
  const auto own = own_modules(memory, mappings);
  if (!own) return found;
  for (const Mapping& m : mappings) {
    if (m.offset != 0 || !m.path.starts_with('/')) continue;
    auto module = ForeignModule::of(memory, m.begin);
    if (module && std::find(own->begin(), own->end(), module->dynamic()) != own->end())
      found.push_back({m.path, *module});
  }
  return found;
}

}  // namespace

std::vector<Change> slots_of_ways_out(const ForeignMemory& memory, const std::vector<Mapping>& mappings) {
  const std::vector<Loaded> all = loaded_in(memory, mappings);
  const auto is = [](const Loaded& loaded, std::string_view name) {
    return std::string_view(loaded.path).substr(loaded.path.find_last_of('/') + 1).starts_with(name);
  };
  std::array<Meaning, kNames.size()> meanings;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::string name(kNames[i]);
    meanings[i].ours = find_in_runtime(memory, mappings, name);
    for (const Loaded& loaded : all) {
      if (is(loaded, "libkarst.so")) continue;
      const std::uint64_t at = loaded.module.find(memory, name);
      if (at == 0) continue;
      if (is(loaded, name == kUnwinder ? "libgcc_s.so" : "libc.so") || is(loaded, "libc-2."))
        meanings[i].theirs = at;
      else
        meanings[i].is_only_one = false;
    }
  }
  std::vector<Change> changes;
  std::uint64_t most = kMostRead;
  for (const Loaded& loaded : all) {
    if (is(loaded, "libkarst") || is(loaded, "libc.so") || is(loaded, "libc-2.") || is(loaded, "ld-")) continue;
    loaded.module.for_each_slot(memory, most, [&](std::string_view name, std::uint64_t slot) {
      const auto known = std::find(kNames.begin(), kNames.end(), name);
      if (known == kNames.end() || slot % sizeof slot != 0 || !loaded.has(mappings, slot, false)) return;
      const Meaning& meaning = meanings[static_cast<std::size_t>(known - kNames.begin())];
      const auto now = memory.get<std::uint64_t>(slot);
      if (!now || meaning.theirs == 0 || meaning.ours == 0) return;
      const bool is_unbound = meaning.is_only_one && loaded.has(mappings, *now, true);
      if (*now != meaning.theirs && !is_unbound) return;
      Change change;
      change.what = Change::What::kSlot;
      Edit& edit = change.edits.emplace_back();
      edit.address = slot;
      edit.size = sizeof slot;
      std::memcpy(edit.before, &*now, sizeof *now);
      std::memcpy(edit.after, &meaning.ours, sizeof meaning.ours);
      changes.push_back(std::move(change));
    });
  }
  return changes;
}

}  // namespace karst::collect
