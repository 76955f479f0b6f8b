// SPDX-License-Identifier: MIT
// What may be written over a process's code and taken back: the jumps of functions, probes and detours, as the tables
// say that the process has (format/patch_table.h). What it says is not believed further than its own code goes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "arch/page.h"
#include "collect/inject/memory.h"
#include "format/patch_site.h"

namespace karst::collect {

/// Bytes that are written over others. What takes back has its site's `before` and `after` exchanged.
struct Edit : format::PatchSite {
  bool overlaps(const Edit& other) const {
    return address < other.address + other.size && other.address < address + size;
  }
  /// Whoever stands from here on, and before its end, would go on in the middle of what changes.
  std::uint64_t first_inside() const { return address + 1 - guard; }
  bool has_inside(std::uint64_t at) const { return at >= first_inside() && at < address + size; }
  bool is_in_one_page() const { return first_inside() / arch::kPage == (address + size - 1) / arch::kPage; }
};

using Edits = std::vector<Edit>;

/// One function's, one probe's, or one detour's; or one slot's (slots.h), which is no code.
struct Change {
  enum class What : std::uint8_t { kFunction, kProbe, kDetour, kSlot };
  What what = What::kFunction;
  Edits edits;
  std::uint64_t semaphore = 0;  ///< of a probe: where 16 bits count who listens; 0: nowhere
  std::uint64_t function = 0;   ///< of a function or a detour: where it begins
  std::uint64_t stub = 0;       ///< of a detour: its NOP
  std::string name;             ///< of a detour

  bool is_detour() const { return what == What::kDetour; }
  bool overlaps(const Change& other) const {
    return std::any_of(edits.begin(), edits.end(), [&](const Edit& a) {
      return std::any_of(other.edits.begin(), other.edits.end(), [&](const Edit& b) { return a.overlaps(b); });
    });
  }
};

/// What there is of all modules with stubs.
struct Changes {
  std::vector<Change> all;
  std::vector<std::uint64_t> returns;  ///< in order: code to which stubs go back
  std::string lost_detour;             ///< one of those that are left out
  std::uint64_t not_code = 0;          ///< functions, probes and detours that are left out: no code is where they were
};

/// `back`: what takes back.
Changes changes_of(const ForeignMemory& memory, const std::vector<Mapping>& mappings, bool back);

}  // namespace karst::collect
