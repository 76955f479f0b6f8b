// Operators new and delete of an allocator that has its own, as jemalloc, tcmalloc and mimalloc do: those do not call
// malloc(). (libstdc++'s do, and need nothing of this.)
//
// Definitions of them here would come before the program's order of libraries where these are found by dlopen() alone;
// whoever is behind could not be called then. So where an allocator is found, the calls of the modules that are there
// are redirected, by the slots through which the loader has bound them.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interpose/memory_records.h"

namespace karst::interpose {
namespace {

constinit RecordKind g_of_new = record_kind("operator new", format::kAllocated);
constinit RecordKind g_of_delete = record_kind("operator delete", format::kFreed);

/// An operator, by its mangled name: what is behind it, and what stands before it.
struct Operator {
  const char* name;
  void* (*ours)();  // a constant, which a function's address as void* is not
  void* behind;
};

constexpr int kMost = 20;
extern Operator g_operators[kMost];

/// An allocator may make them by malloc(), which has recorded it then.
template <int kIndex, typename... Rest>
void* take(size_t size, Rest... rest) {
  t_memory.taken = nullptr;
  void* const address = reinterpret_cast<void* (*)(size_t, Rest...)>(g_operators[kIndex].behind)(size, rest...);
  return address == t_memory.taken ? address : allocated(g_of_new, address, size);
}

template <int kIndex, typename... Rest>
void give(void* address, Rest... rest) {
  if (address != nullptr && is_freed(address)) record(g_of_delete, number(address));
  t_memory.deleting = address;
  reinterpret_cast<void (*)(void*, Rest...)>(g_operators[kIndex].behind)(address, rest...);
  t_memory.deleting = nullptr;
}

// An alignment is passed as a number, std::nothrow by its address.
template <int kIndex, typename... Rest>
void* taker() {
  return reinterpret_cast<void*>(&take<kIndex, Rest...>);
}
template <int kIndex, typename... Rest>
void* giver() {
  return reinterpret_cast<void*>(&give<kIndex, Rest...>);
}

constinit Operator g_operators[kMost] = {
    {"_Znwm", taker<0>, nullptr},
    {"_Znam", taker<1>, nullptr},
    {"_ZnwmRKSt9nothrow_t", taker<2, const void*>, nullptr},
    {"_ZnamRKSt9nothrow_t", taker<3, const void*>, nullptr},
    {"_ZnwmSt11align_val_t", taker<4, size_t>, nullptr},
    {"_ZnamSt11align_val_t", taker<5, size_t>, nullptr},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", taker<6, size_t, const void*>, nullptr},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", taker<7, size_t, const void*>, nullptr},
    {"_ZdlPv", giver<8>, nullptr},
    {"_ZdaPv", giver<9>, nullptr},
    {"_ZdlPvm", giver<10, size_t>, nullptr},
    {"_ZdaPvm", giver<11, size_t>, nullptr},
    {"_ZdlPvRKSt9nothrow_t", giver<12, const void*>, nullptr},
    {"_ZdaPvRKSt9nothrow_t", giver<13, const void*>, nullptr},
    {"_ZdlPvSt11align_val_t", giver<14, size_t>, nullptr},
    {"_ZdaPvSt11align_val_t", giver<15, size_t>, nullptr},
    {"_ZdlPvmSt11align_val_t", giver<16, size_t, size_t>, nullptr},
    {"_ZdaPvmSt11align_val_t", giver<17, size_t, size_t>, nullptr},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", giver<18, size_t, const void*>, nullptr},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", giver<19, size_t, const void*>, nullptr},
};

/// What the loader knows of a module.
struct Dynamic {
  const ElfW(Rela) * tables[2] = {};
  size_t counts[2] = {};
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;

  Dynamic(const ElfW(Dyn) * entry, uintptr_t bias) {
    // glibc has made addresses of most of them.
    const auto address = [&] { return entry->d_un.d_ptr < bias ? entry->d_un.d_ptr + bias : entry->d_un.d_ptr; };
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_JMPREL) tables[0] = reinterpret_cast<const ElfW(Rela)*>(address());
      if (entry->d_tag == DT_PLTRELSZ) counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
      if (entry->d_tag == DT_RELA) tables[1] = reinterpret_cast<const ElfW(Rela)*>(address());
      if (entry->d_tag == DT_RELASZ) counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address());
      if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(address());
    }
  }
};

/// Where the loader has made a module's slots read-only.
struct Protected {
  uintptr_t begin = 0, end = 0;
};

void redirect(void** slot, void* to, const Protected& relro) {
  const auto at = reinterpret_cast<uintptr_t>(slot);
  if (at < relro.begin || at >= relro.end) {
    __atomic_store_n(slot, to, __ATOMIC_RELAXED);
    return;
  }
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* const begin = reinterpret_cast<void*>(at & ~(page - 1));
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(slot, to, __ATOMIC_RELAXED);
  mprotect(begin, page, PROT_READ);
}

/// A slot that is not bound yet leads into its own module.
void redirect_all(const dl_phdr_info& module, const Dynamic& dynamic, const Protected& relro, uintptr_t text_begin,
                  uintptr_t text_end) {
  if (dynamic.symbols == nullptr || dynamic.strings == nullptr) return;
  for (int table = 0; table < 2; ++table)
    for (size_t i = 0; dynamic.tables[table] != nullptr && i < dynamic.counts[table]; ++i) {
      const ElfW(Rela)& relocation = dynamic.tables[table][i];
      const auto type = ELF64_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) continue;
      const char* const name = dynamic.strings + dynamic.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
      if (name[0] != '_' || name[1] != 'Z' || (name[2] != 'n' && name[2] != 'd')) continue;
      void** const slot = reinterpret_cast<void**>(module.dlpi_addr + relocation.r_offset);
      const auto bound = reinterpret_cast<uintptr_t>(__atomic_load_n(slot, __ATOMIC_RELAXED));
      for (const Operator& one : g_operators) {
        if (one.behind == nullptr || strcmp(name, one.name) != 0) continue;
        const bool unbound = type == R_X86_64_JUMP_SLOT && text_begin <= bound && bound < text_end;
        if (bound == number(one.behind) || unbound) redirect(slot, one.ours(), relro);
      }
    }
}

int redirect_module(dl_phdr_info* module, size_t, void* allocator) {
  const ElfW(Dyn)* dynamic = nullptr;
  Protected relro;
  uintptr_t text_begin = 0, text_end = 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module->dlpi_phdr[i];
    const uintptr_t begin = module->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (part.p_type == PT_GNU_RELRO) relro = {begin & ~uintptr_t{4095}, begin + part.p_memsz};
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0) text_begin = begin, text_end = begin + part.p_memsz;
    // The allocator's own calls stay as they are.
    if (part.p_type == PT_LOAD && begin == number(allocator)) return 0;
  }
  const bool is_kernels = strncmp(module->dlpi_name, "linux-vdso", 10) == 0;
  if (dynamic != nullptr && !is_kernels)
    redirect_all(*module, Dynamic(dynamic, module->dlpi_addr), relro, text_begin, text_end);
  return 0;
}

}  // namespace

void find_operators(const void* malloc_behind) {
  Dl_info of_malloc{}, of_new{};
  void* const first = dlsym(RTLD_NEXT, "_Znwm");
  if (first == nullptr || dladdr(first, &of_new) == 0 || dladdr(malloc_behind, &of_malloc) == 0 ||
      of_new.dli_fbase != of_malloc.dli_fbase)
    return;
  for (Operator& one : g_operators) {
    void* const behind = dlsym(RTLD_NEXT, one.name);
    Dl_info of{};
    if (behind != nullptr && dladdr(behind, &of) != 0 && of.dli_fbase == of_malloc.dli_fbase) one.behind = behind;
  }
  dl_iterate_phdr(redirect_module, of_malloc.dli_fbase);
}

}  // namespace karst::interpose
