// SPDX-License-Identifier: MIT
// Probes that a program's authors put into it (patch/sdt.h): the stubs of a table of patches (format/patch_table.h)
// call karst_hook_probe, which becomes a note of the probe's name and values. The program sees nothing of it: the hook
// keeps every register and flag, and begins its frame below the red zone. Places that jumps lead to (patch/landings.h)
// are seen in the same way, and become marks.
#pragma once
#include <cstdint>

#include "format/patch_table.h"
#include "runtime/modules/note_names.h"

namespace karst::runtime {

/// A probe of a module, for as long as the process runs.
struct ProbeSite {
  NoteName name;
  const format::PatchProbe* probe;
  const char* description;
  std::uint32_t description_size;
  bool are_numbers;  ///< its values
};

/// Makes sites of a table's probes, whose numbers are in their bounds. Null: there is no memory.
ProbeSite* make_probe_sites(const format::PatchProbe* probes, std::uint32_t count, const char* text);

/// Enters the probe's name, if it has one, so that the program does not wait for that when it passes the probe first.
void enter_probe(ProbeSite& site);

/// The program computes a probe's values where somebody listens only: raises the counter that says so. Nothing if it
/// cannot be written to.
void raise_semaphore(std::uint64_t address);

extern "C" {
/// What stubs call (arch/*/probe.S). Not callable from C++.
__attribute__((visibility("hidden"))) void karst_hook_probe();
/// Called by it. Async-signal-safe; takes no lock but at a probe's first note.
__attribute__((visibility("hidden"))) void karst_record_probe(const karst::format::SavedProbe* saved);
}

}  // namespace karst::runtime
