// SPDX-License-Identifier: MIT
#include "runtime/unbuilt/detours.h"

#include <sys/mman.h>

#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"
#include "runtime/unbuilt/plain_jumps.h"
#include "runtime/unbuilt/plain_parts.h"

namespace karst::runtime {

using namespace format;

namespace {

/// Null, or why the program gets no detours.
const char* fetch_detours_of(const dl_phdr_info& info, const Options& session) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (g_plain[i].is_here && g_plain[i].code.table->detours != 0) return nullptr;  // another karst was faster
  PlainModule p;
  read_image(info, p.image);
  const int table = ask_for_table(info, kPatchesOfProgram, &session);
  if (table < 0) return "none of its functions can be patched";
  const bool opened = open_table(table, p.image, p.code);
  sys::close(table);
  if (!opened) return "what karst gives it is not of its code";
  if (g_plain_count == kMostPatchedModules || p.code.table->functions != 0 || p.code.table->probes != 0 ||
      !map_stubs(p.image, p.code)) {
    close_table(p.code);
    return kNoMemory;
  }
  p.is_here = true;
  p.code.is_new = false;  // its threads execute the code
  g_plain[g_plain_count] = p;
  store(g_plain_count, g_plain_count + 1);
  return nullptr;
}

/// `to` becomes the address of the jump before the NOP at `offset`, and the NOP a short jump to that one: by a store of
/// two bytes in an aligned quadword, as in arch/arch.h, so threads may be executing it.
bool open_detour(const PlainCode& p, std::uint32_t offset, std::uintptr_t to) {
  constexpr std::uint64_t kNop = 0x0000000000841f0fU;  // nopl 0(%rax, %rax, 1)
  constexpr std::uint16_t kJumpBack = 0xf0eb;          // jmp to the 14 bytes before it
  static_assert(kPatchDetourNop == sizeof kNop && kPatchDetourJump == 2 + 6 + sizeof to);
  if (load(*reinterpret_cast<const std::uint64_t*>(p.stubs + offset)) != kNop)
    return *reinterpret_cast<const std::uintptr_t*>(p.stubs + offset - sizeof to) == to;
  if (sys::mprotect(p.stubs, p.stubs_size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  store(*reinterpret_cast<std::uintptr_t*>(p.stubs + offset - sizeof to), to);
  store(*reinterpret_cast<std::uint16_t*>(p.stubs + offset), kJumpBack);
  sys::mprotect(p.stubs, p.stubs_size, PROT_READ | PROT_EXEC);
  return true;
}

/// Calls visit(code, detour) for the program's own function of this name. What it returns; else `otherwise`.
template <typename Result, typename Visit>
Result with_detour(const char* name, Result otherwise, Visit visit) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i) {
    const PlainModule& p = g_plain[i];
    // Some alone would tell of memory that is never given back.
    if (!p.is_here || p.code.stubs == 0 || p.code.table->detours == 0 || !detours_stand(p.image, p.code)) continue;
    for (std::uint32_t n = 0; n < p.code.table->detours; ++n)
      if (const PatchDetour& detour = p.code.detours[n]; equal(p.code.text + detour.name, name))
        return visit(p.code, detour);
  }
  return otherwise;
}

}  // namespace

const char* fetch_detours(const Options& session) {
  struct Search {
    const Options& session;
    const char* problem;
  } search{session, "it is no program"};
  if (!begin_telling()) return kNoMemory;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& s = *static_cast<Search*>(context);
        if (!is_program(*info)) return 0;
        s.problem = fetch_detours_of(*info, s.session);
        return 1;
      },
      &search);
  return search.problem;
}

const void* find_detour(const char* name) {
  return with_detour<const void*>(name, nullptr, [](const PlainCode& p, const PatchDetour& detour) {
    return reinterpret_cast<const void*>(p.stubs + detour.offset + kPatchDetourNop);
  });
}

bool open_detour(const char* name, const void* to) {
  return with_detour(name, false, [to](const PlainCode& p, const PatchDetour& detour) {
    return open_detour(p, detour.offset, reinterpret_cast<std::uintptr_t>(to));
  });
}

}  // namespace karst::runtime
