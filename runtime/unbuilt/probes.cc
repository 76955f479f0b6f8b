// SPDX-License-Identifier: MIT
#include "runtime/unbuilt/probes.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"
#include "runtime/values/values.h"
#include "runtime/ways_out/jump_marks.h"

namespace karst::runtime {

using namespace format;

ProbeSite* make_probe_sites(const PatchProbe* probes, std::uint32_t count, const char* text) {
  const long got = sys::mmap(0, count * sizeof(ProbeSite), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(got)) return nullptr;
  auto* sites = reinterpret_cast<ProbeSite*>(got);
  for (std::uint32_t i = 0; i < count; ++i) {
    const char* description = text + probes[i].description;
    sites[i] = {{text + probes[i].name, nullptr, 0, 0},
                probes + i,
                description,
                static_cast<std::uint32_t>(length(description)),
                are_numbers(probes[i].ops, probes[i].values)};
  }
  return sites;
}

void enter_probe(ProbeSite& site) {
  if (site.probe->kind == PatchProbeKind::kNote)
    note_id_with_values(&site.name, site.description, site.description_size);
}

void raise_semaphore(std::uint64_t address) {
  std::uint16_t count = 0;
  const iovec own{&count, sizeof count};
  const iovec there{reinterpret_cast<void*>(address), sizeof count};
  // By the kernel: what a linker put into memory that is read-only by now is no reason to crash.
  const long self = sys::getpid();
  if (sys::call(SYS_process_vm_readv, self, sys::word(&own), 1, sys::word(&there), 1, 0) != sizeof count) return;
  ++count;
  sys::call(SYS_process_vm_writev, self, sys::word(&own), 1, sys::word(&there), 1, 0);
}

extern "C" void karst_record_probe(const SavedProbe* saved) {
  ProbeSite& site = reinterpret_cast<ProbeSite*>(saved->probes)[saved->number];
  if (site.probe->kind == PatchProbeKind::kSetsPlace) return record_place(saved->rsp);
  if (site.probe->kind == PatchProbeKind::kLands) return record_jump_to(saved->rsp);
  if (!may_record_notes()) return;
  const std::uint32_t id = note_id_with_values(&site.name, site.description, site.description_size);
  if (id == 0) return;
  const PatchProbe& probe = *site.probe;
  const auto* words = reinterpret_cast<const std::uint64_t*>(saved);
  if (site.are_numbers) return record_numbers_note(NoteKind::kRecord, id, probe.ops, probe.values, words);
  record_values_note(NoteKind::kRecord, id, probe.ops, probe.values, words, saved->rsp, kUsualValueText);
}

}  // namespace karst::runtime
