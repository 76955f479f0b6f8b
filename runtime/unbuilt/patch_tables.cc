// SPDX-License-Identifier: MIT
#include "runtime/unbuilt/patch_tables.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "arch/arch.h"
#include "format/patch_site.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

bool are_places(const ValueOp* ops, std::uint32_t count) {
  constexpr std::uint32_t kWords = sizeof(SavedProbe) / sizeof(std::uint64_t);
  const auto is_word = [](std::uint32_t place) { return place < kWords; };
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_indexed = ops[i].how == static_cast<std::uint8_t>(ValueHow::kIndexed);
    if (!is_word(ops[i].place) && ops[i].place < kFirstVectorPlace) return false;
    if (is_indexed && !is_word(indexed_size(ops[i].size).index)) return false;
  }
  return true;
}

bool are_probes_sound(const PlainCode& p) {
  const PatchTable& t = *p.table;
  if (t.probes == 0) return true;
  if (t.text_size == 0 || p.text[t.text_size - 1] != '\0' || t.code_size < kPatchProbesSlot + sizeof(std::uint64_t))
    return false;
  for (std::uint32_t i = 0; i < t.probes; ++i) {
    const PatchProbe& probe = p.probes[i];
    if (probe.name >= t.text_size || probe.description >= t.text_size || probe.values > kMostProbeValues ||
        !are_places(probe.ops, probe.values))
      return false;
  }
  return true;
}

/// The table is whole, and each number in it is in its bounds.
bool is_sound(const PlainCode& p, const ModuleImage& image) {
  const PatchTable& t = *p.table;
  if (!are_probes_sound(p) || (t.text_size != 0 && p.text[t.text_size - 1] != '\0')) return false;
  for (std::uint32_t i = 0; i < t.sleds; ++i) {
    const PatchSled& s = p.sleds[i];
    const std::uint64_t at = image.bias + s.function;
    const std::uint32_t kind = s.kind & ~kPatchSledLate;
    if (kind > KARST_SLED_REGISTER_TAIL_CALL || ((i == 0 || kind != s.kind) && kind != KARST_SLED_ENTRY) ||
        at < image.text_begin || at >= image.text_end)
      return false;
    if (s.kind == KARST_SLED_COLD) continue;
    const std::uint32_t size = arch::sled_size(arch::Sled::kNop);
    if (s.offset > t.code_size || t.code_size - s.offset < size || !arch::is_sled(p.code + s.offset)) return false;
  }
  for (std::uint32_t i = 0; i < t.jumps; ++i) {
    const PatchJump& j = p.jumps[i];
    if (!is_possible(j) || j.function >= std::uint64_t{t.functions} + t.probes + t.detours || j.offset >= t.code_size ||
        image.code_from(image.bias + j.address) < j.size)
      return false;
  }
  for (std::uint32_t i = 0; i < t.fixups; ++i)
    if (p.fixups[i].offset > t.code_size || t.code_size - p.fixups[i].offset < 4) return false;
  for (std::uint32_t i = 0; i < t.detours; ++i) {
    const std::uint32_t at = p.detours[i].offset;
    if (p.detours[i].name >= t.text_size || at < kPatchDetourJump || at % kPatchDetourNop != 0 || at >= t.code_size ||
        t.code_size - at < kPatchDetourNop || image.code_from(image.bias + p.detours[i].function) == 0)
      return false;
  }
  return true;
}

}  // namespace

bool open_table(int descriptor, const ModuleImage& image, PlainCode& p) {
  struct stat status {};
  if (sys::call(SYS_fstat, descriptor, sys::word(&status)) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  // What is not sealed could change behind the checks.
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_WRITE;
  const long seals = sys::call(SYS_fcntl, descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kNeeded) != kNeeded || size < sizeof(PatchTable) || size > kMostPatchTable) return false;
  const long at = sys::mmap(0, size, PROT_READ, MAP_PRIVATE, descriptor);
  if (sys::failed(at)) return false;
  p.size = size;
  p.table = reinterpret_cast<const PatchTable*>(at);
  const PatchTable& t = *p.table;
  const std::uint64_t probes = std::uint64_t{t.probes} * sizeof(PatchProbe);
  const std::uint64_t sleds = std::uint64_t{t.sleds} * sizeof(PatchSled);
  const std::uint64_t jumps = std::uint64_t{t.jumps} * sizeof(PatchJump);
  const std::uint64_t fixups = std::uint64_t{t.fixups} * sizeof(PatchFixup);
  const std::uint64_t detours = std::uint64_t{t.detours} * sizeof(PatchDetour);
  p.probes = reinterpret_cast<const PatchProbe*>(p.table + 1);
  p.sleds = reinterpret_cast<const PatchSled*>(reinterpret_cast<const char*>(p.probes) + probes);
  p.jumps = reinterpret_cast<const PatchJump*>(reinterpret_cast<const char*>(p.sleds) + sleds);
  p.fixups = reinterpret_cast<const PatchFixup*>(reinterpret_cast<const char*>(p.jumps) + jumps);
  p.detours = reinterpret_cast<const PatchDetour*>(reinterpret_cast<const char*>(p.fixups) + fixups);
  p.code = reinterpret_cast<const unsigned char*>(p.detours) + detours;
  p.text = reinterpret_cast<const char*>(p.code) + t.code_size;
  if (t.magic == kPatchTableMagic && t.version == kPatchTableVersion && (t.functions != 0) == (t.sleds != 0) &&
      (t.functions != 0 || t.probes != 0 || t.detours != 0) && t.code_size < kMostPatchTable &&
      sizeof t + probes + sleds + jumps + fixups + detours + t.code_size + t.text_size == size &&
      image.bias + t.code_begin == image.text_begin && is_sound(p, image))
    return true;
  close_table(p);
  return false;
}

void close_table(PlainCode& p) {
  sys::munmap(const_cast<PatchTable*>(p.table), p.size);
  p = PlainCode{};
}

bool is_same_table(const PlainCode& a, const PlainCode& b) {
  if (a.size != b.size) return false;
  const auto* x = reinterpret_cast<const unsigned char*>(a.table);
  const auto* y = reinterpret_cast<const unsigned char*>(b.table);
  for (std::uint64_t i = 0; i < a.size; ++i)
    if (x[i] != y[i]) return false;
  return true;
}

bool are_semaphores_sound(const dl_phdr_info& info, const PlainCode& p) {
  for (std::uint32_t i = 0; i < p.table->probes; ++i) {
    const std::uint64_t at = p.probes[i].semaphore;
    bool is_inside = at == 0;
    for (int n = 0; n < info.dlpi_phnum; ++n) {
      const ElfW(Phdr)& s = info.dlpi_phdr[n];
      is_inside =
          is_inside || (s.p_type == PT_LOAD && (s.p_flags & PF_W) != 0 && at >= s.p_vaddr &&
                        s.p_memsz >= sizeof(std::uint16_t) && at - s.p_vaddr <= s.p_memsz - sizeof(std::uint16_t));
    }
    if (!is_inside) return false;
  }
  return true;
}

}  // namespace karst::runtime
