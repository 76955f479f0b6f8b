// SPDX-License-Identifier: MIT
// dlopen(): where the time of a plugin's or an extension module's coming goes.
//
// libc looks at who calls it where a name has no '/': the library is looked for along a search path of the caller's
// module, too. Called by us, such a search would be another one. So a call is told where that makes no difference;
// elsewhere it goes on as a jump, with the return address that it came with. (glibc: _dl_map_object in elf/dl-load.c,
// dl_open_worker in elf/dl-open.c. `$ORIGIN` and its like stand for the caller's directory.)
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "interpose/call.h"

namespace {

using karst::interpose::in_told_zone;
using karst::interpose::is_off;
using karst::interpose::tells;
using karst::interpose::Text;
using karst::interpose::Values;

// What failed has no errno: dlerror() tells why, once, and that is the program's to ask.
KARST_ZONE_KIND(dlopen, "dlopen", "name:s,flags:x|:r8,handle:x,path:s")

KARST_BEFORE(dlopen)

struct Search {
  uintptr_t caller;
  bool differs;
};

/// Whether the module has a search path of its own that a call from elsewhere would not go along.
int look_at(dl_phdr_info* module, size_t, void* given) {
  Search& search = *static_cast<Search*>(given);
  const bool is_program = module->dlpi_name == nullptr || module->dlpi_name[0] == '\0';
  bool has_caller = false;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module->dlpi_phdr[i];
    const uintptr_t begin = module->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && search.caller - begin < part.p_memsz) has_caller = true;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): where the module lies
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
  }
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    // The program's DT_RPATH holds for all, others' for what they have brought.
    if (dynamic->d_tag == DT_RPATH && !is_program) search.differs = true;
    if (dynamic->d_tag == DT_RUNPATH && has_caller) search.differs = true;
    if (dynamic->d_tag == DT_FLAGS_1 && (dynamic->d_un.d_val & DF_1_NODEFLIB) != 0 && has_caller) search.differs = true;
  }
  return search.differs ? 1 : 0;
}

bool is_same_from_here(const char* name, const void* caller) {
  if (name == nullptr) return true;
  if (strchr(name, '$') != nullptr) return false;
  if (strchr(name, '/') != nullptr) return true;
  Search search{reinterpret_cast<uintptr_t>(caller), false};
  dl_iterate_phdr(look_at, &search);
  return !search.differs;
}

__attribute__((noinline)) void* told_dlopen(const char* name, int flags) {
  return in_told_zone(
      g_dlopen_zone, KARST_GIVEN(Text{name}, flags), [&] { return g_dlopen(name, flags); },
      [](Values& returned, long handle) {
        returned.add(handle != 0 ? 0L : -long{ELIBACC});
        returned.add(handle);
        // glibc's handles are what lists its modules; dlinfo() would forget what dlerror() has to tell.
        if (handle != 0)
          // NOLINTNEXTLINE(performance-no-int-to-ptr)
          returned.add(Text{reinterpret_cast<const link_map*>(handle)->l_name});
        else
          returned.add_null();
        if (returned.cut_text() != nullptr) karst::interpose::note_text(returned.cut_text());
      });
}

}  // namespace

KARST_EXPORT void* dlopen(const char* name, int flags) noexcept {
  if (!is_off() && tells() && is_same_from_here(name, __builtin_return_address(0))) return told_dlopen(name, flags);
  return g_dlopen(name, flags);
}
