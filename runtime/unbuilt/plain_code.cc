// SPDX-License-Identifier: MIT
// Asks for tables, keeps them, maps their stubs.
#include "runtime/unbuilt/plain_code.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "arch/page.h"
#include "runtime/modules/hooks.h"
#include "runtime/process/session.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/own_program.h"
#include "runtime/system/syscalls.h"
#include "runtime/unbuilt/plain_jumps.h"
#include "runtime/unbuilt/plain_parts.h"
#include "runtime/unbuilt/probes.h"

extern "C" {
__attribute__((visibility("default"))) karst::format::PatchedModules karst_patched_modules;
}

namespace karst::runtime {

using namespace format;

namespace {
// Raw memory: values that a module begins with would lie in the library's file, in pages that each process copies.
alignas(PlainModule) unsigned char g_plain_memory[kMostPatchedModules * sizeof(PlainModule)];
}  // namespace
PlainModule* const g_plain = reinterpret_cast<PlainModule*>(g_plain_memory);
std::uint32_t g_plain_count;

namespace {

WipedLock g_told;  // of karst_patched_modules. Modules come above within dl_iterate_phdr(), whose lock is theirs

/// Modules that were asked for, by where they lie and what they are called.
struct Asked {
  std::uint64_t bias;
  std::uint64_t name;  // a hash
  bool is_here;
};
constexpr std::uint32_t kMostAsked = 1024;
Asked g_asked[kMostAsked];
std::uint32_t g_asked_count;

bool is_ours(const char* path) {
  const char* name = path;
  for (const char* c = path; *c != '\0'; ++c)
    if (*c == '/') name = c + 1;
  return starts_with(name, "libkarst.so");
}

void use_stubs(ModuleImage& image, const PlainCode& p) {
  image.plain_sleds = p.sleds;
  image.plain_count = p.table->sleds;
  image.plain_bias = image.bias;
  image.plain_stubs = p.stubs;
  image.plain_stubs_size = p.stubs_size;
  image.plain_left_alone = p.table->left_alone;
}

/// False: it was asked for before.
bool is_new(const dl_phdr_info& info) {
  std::uint64_t name = 0xcbf29ce484222325U;  // FNV-1a
  for (const char* c = info.dlpi_name; c != nullptr && *c != '\0'; ++c)
    name = (name ^ static_cast<unsigned char>(*c)) * 0x100000001b3U;
  for (std::uint32_t i = 0; i < g_asked_count; ++i) {
    if (g_asked[i].bias != info.dlpi_addr || g_asked[i].name != name) continue;
    g_asked[i].is_here = true;
    return false;
  }
  if (g_asked_count == kMostAsked) return false;
  g_asked[g_asked_count++] = {info.dlpi_addr, name, true};
  return true;
}

/// A module that has come back to its place has its stubs there still. Null: it is none.
PlainModule* known(const PlainModule& p) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (!g_plain[i].is_here && g_plain[i].image.bias == p.image.bias && is_same_table(g_plain[i].code, p.code))
      return &g_plain[i];
  return nullptr;
}

/// Functions that are instrumented would be recorded twice; a static program has us among its functions.
bool may_patch_beside([[maybe_unused]] const ModuleImage& image, bool has_sleds) {
#ifdef KARST_STATIC
  return !has_sleds;
#else
  return !has_sleds || !image.finstrument;
#endif
}

/// True if there is a table of the module.
bool fetch(const dl_phdr_info& info, const WantedCode& wanted) {
  PlainModule p;
  const bool is_programs = is_program(info);
  if ((!is_programs && is_ours(info.dlpi_name)) || !is_new(info)) return false;
  const bool has_sleds = read_image(info, p.image);
  const bool functions = (is_programs ? wanted.program : wanted.libraries) && may_patch_beside(p.image, has_sleds);
  if (p.image.segment_count == 0 || (!functions && !wanted.probes && !(is_programs && wanted.detours))) return false;
  p.image.forget_sleds();
  const int table =
      ask_for_table(info, (is_programs ? kPatchesOfProgram : 0U) | (functions ? kPatchesOfFunctions : 0U) |
                              (has_sleds ? kPatchesBesideSleds : 0U));
  if (table < 0) return false;
  const bool opened = open_table(table, p.image, p.code);
  sys::close(table);
  if (!opened) return false;
  PlainModule* place = known(p);
  if (place != nullptr) {
    close_table(p.code);
    p.code = place->code;
    p.code.is_new = true;
    use_stubs(p.image, p.code);
  } else if (!are_semaphores_sound(info, p.code) || g_plain_count == kMostPatchedModules) {
    close_table(p.code);
    return false;
  }
  p.is_here = true;
  if (place == nullptr) place = &g_plain[g_plain_count++];
  *place = p;
  return true;
}

std::uint32_t fetch_all(const WantedCode& wanted) {
  struct Search {
    const WantedCode& wanted;
    std::uint32_t found;
  } search{wanted, 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& s = *static_cast<Search*>(context);
        if (fetch(*info, s.wanted)) ++s.found;
        return 0;
      },
      &search);
  return search.found;
}

/// A probe of it is one that was asked for.
bool has_notes(const PlainCode& p) {
  for (std::uint32_t i = 0; i < p.table->probes; ++i)
    if (p.probes[i].kind == PatchProbeKind::kNote) return true;
  return false;
}

void begin_probes_of(const ModuleImage& image, const PlainCode& p) {
  struct Work {
    const ModuleImage& image;
    const PlainCode& code;
    std::uint32_t missing;
  } work{image, p, 0};
  const auto written = [](void* context, std::uint32_t probe) {
    const auto& w = *static_cast<const Work*>(context);
    enter_probe((*reinterpret_cast<ProbeSite* const*>(w.code.stubs + kPatchProbesSlot))[probe]);
    const std::uint64_t semaphore = w.code.probes[probe].semaphore;
    if (semaphore != 0) raise_semaphore(w.image.bias + semaphore);
  };
  const auto left_out = [](void* context, std::uint32_t probe) {
    auto& w = *static_cast<Work*>(context);
    w.missing += w.code.probes[probe].kind == PatchProbeKind::kNote ? 1 : 0;
  };
  if (!write_probe_jumps(image, p, &work, written, left_out)) {
    if (has_notes(p))
      Message().text(image.name()).text(": its probes are not recorded, as its code may not be written to");
    return;
  }
  if (work.missing != 0)
    Message()
        .text(image.name())
        .text(": probes that are not recorded, as its code is not as in its file: ")
        .number(work.missing);
}

}  // namespace

bool begin_telling() {
  if (!g_told.create()) return false;
  karst_patched_modules.version = kPatchTableVersion;
  return true;
}

bool is_program(const dl_phdr_info& info) { return info.dlpi_name == nullptr || *info.dlpi_name == '\0'; }

int ask_for_table(const dl_phdr_info& info, std::uint32_t what, const Options* session) {
  const bool is_programs = (what & kPatchesOfProgram) != 0;
  const long file = is_programs ? open_own_program() : sys::open(info.dlpi_name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;  // the vdso, and programs that may be executed but not read
  const int table = ask_for_patches(static_cast<int>(file), what, session);
  sys::close(static_cast<int>(file));
  return table;
}

bool map_stubs(const ModuleImage& image, PlainCode& p) {
  const PatchTable& t = *p.table;
  const std::uint64_t size = align_up(t.code_size, arch::kPage);
  const long at = map_near_code(image.text_begin, image.text_end, size);
  if (at == -1) return false;
  auto* code = reinterpret_cast<unsigned char*>(at);
  copy(code, p.code, t.code_size);
  if (t.probes != 0) {
    ProbeSite* sites = make_probe_sites(p.probes, t.probes, p.text);
    if (sites == nullptr) {
      sys::munmap(code, size);
      return false;
    }
    const std::uint64_t words[] = {reinterpret_cast<std::uint64_t>(karst_hook_probe),
                                   reinterpret_cast<std::uint64_t>(sites)};
    static_assert(kPatchHookSlot == 0 && kPatchProbesSlot == sizeof words[0]);
    copy(code, words, sizeof words);
  }
  bool reaches = true;
  for (std::uint32_t i = 0; i < t.fixups; ++i) {
    const PatchFixup& f = p.fixups[i];
    const std::uint64_t from = static_cast<std::uint64_t>(at) + f.offset + 4;
    const auto distance = static_cast<std::int64_t>(image.bias + f.target - from);
    reaches = reaches && distance == static_cast<std::int32_t>(distance);
    copy(code + f.offset, &distance, sizeof(std::int32_t));
  }
  if (!reaches || sys::mprotect(static_cast<std::uintptr_t>(at), size, PROT_READ | PROT_EXEC) != 0) {
    sys::munmap(code, size);
    return false;
  }
  p.stubs = static_cast<std::uintptr_t>(at);
  p.stubs_size = size;
  const Locked lock(g_told);
  PatchedModules& told = karst_patched_modules;
  told.modules[told.count] = {image.bias, p.stubs, reinterpret_cast<std::uint64_t>(p.table), p.size};
  store(told.count, told.count + 1);
  return true;
}

std::uint32_t fetch_plain_code(const WantedCode& wanted) {
  // An earlier attach may have been cut off: its stubs stay, as jumps may lead to them.
  if (!begin_telling()) return 0;
  g_plain_count = 0;
  g_asked_count = 0;
  store(karst_patched_modules.count, 0U);
  return fetch_all(wanted);
}

std::uint32_t fetch_late_code(const WantedCode& wanted) {
  for (std::uint32_t i = 0; i < g_asked_count; ++i) g_asked[i].is_here = false;
  const std::uint32_t found = fetch_all(wanted);
  for (std::uint32_t i = 0; i < g_asked_count;) {
    if (g_asked[i].is_here) {
      ++i;
      continue;
    }
    for (std::uint32_t n = 0; n < g_plain_count; ++n)
      if (g_plain[n].is_here && g_plain[n].image.bias == g_asked[i].bias) g_plain[n].has_gone = true;
    g_asked[i] = g_asked[--g_asked_count];
  }
  return found;
}

void for_each_gone_code(void (*visit)(const ModuleImage& image)) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i) {
    PlainModule& p = g_plain[i];
    if (!p.has_gone) continue;
    p.has_gone = p.is_here = false;
    if (p.code.table->functions != 0) visit(p.image);
  }
}

void map_plain_code() {
  for (std::uint32_t i = 0; i < g_plain_count; ++i) {
    PlainModule& p = g_plain[i];
    if (!p.is_here || p.code.stubs != 0) continue;
    if (map_stubs(p.image, p.code))
      use_stubs(p.image, p.code);
    else
      Message().text(p.image.name()).text(" is not traced: ").text(kNoMemory);
  }
}

void for_each_plain_code(void (*visit)(ModuleImage& image, PlainCode& code)) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (PlainModule& p = g_plain[i]; p.is_here && p.code.stubs != 0 && p.code.table->functions != 0)
      visit(p.image, p.code);
}

void begin_probes() {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (PlainModule& p = g_plain[i];
        p.is_here && p.code.is_new && p.code.stubs != 0 && (p.code.table->probes != 0 || p.code.table->detours != 0))
      begin_probes_of(p.image, p.code);
}

bool has_code_of_program() {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (const PlainModule& p = g_plain[i]; p.is_here && *p.image.path == '\0' && p.code.table->functions != 0)
      return true;
  return false;
}

void end_of_new_code() {
  for (std::uint32_t i = 0; i < g_plain_count; ++i) g_plain[i].code.is_new = false;
}

}  // namespace karst::runtime
