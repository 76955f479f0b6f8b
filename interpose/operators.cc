// SPDX-License-Identifier: MIT
// Operators new and delete of an allocator that has its own, as jemalloc, tcmalloc and mimalloc do: those do not call
// malloc(). (libstdc++'s do, and need nothing of this.)
//
// Definitions of them here would come before the program's order of libraries where these are found by dlopen() alone;
// whoever is behind could not be called then. So where an allocator is found, the calls of the modules that are there
// are redirected, by the slots through which the loader has bound them (interpose/slots.h).
#include "interpose/operators.h"

#include <dlfcn.h>

#include "interpose/memory_records.h"
#include "interpose/slots.h"
#include "interpose/switch.h"

namespace karst::interpose {
namespace {

constinit RecordKind g_of_new = record_kind("operator new", format::kAllocated);
constinit RecordKind g_of_delete = record_kind("operator delete", format::kFreed);

constexpr const char* name_of(unsigned number) { return format::kAllocatorFunctions[format::kFirstOperator + number]; }
static_assert(sizeof format::kAllocatorFunctions / sizeof(char*) == format::kFirstOperator + kOperators);

/// An allocator may make them by malloc(), which has recorded it then.
template <int kIndex, typename... Rest>
void* take(size_t size, Rest... rest) {
  const auto behind = reinterpret_cast<void* (*)(size_t, Rest...)>(const_cast<void*>(g_operators[kIndex].behind));
  if (is_off()) return behind(size, rest...);
  t_memory.taken = nullptr;
  void* const address = behind(size, rest...);
  return address == t_memory.taken ? address : allocated(g_of_new, address, size);
}

template <int kIndex, typename... Rest>
void give(void* address, Rest... rest) {
  const auto behind = reinterpret_cast<void (*)(void*, Rest...)>(const_cast<void*>(g_operators[kIndex].behind));
  if (is_off()) return behind(address, rest...);
  if (address != nullptr && is_freed(address)) record(g_of_delete, number(address));
  t_memory.deleting = address;
  behind(address, rest...);
  t_memory.deleting = nullptr;
}

// An alignment is passed as a number, std::nothrow by its address.
template <int kIndex, typename... Rest>
const void* taker() {
  return reinterpret_cast<const void*>(&take<kIndex, Rest...>);
}
template <int kIndex, typename... Rest>
const void* giver() {
  return reinterpret_cast<const void*>(&give<kIndex, Rest...>);
}

}  // namespace

constinit StandIn g_operators[kOperators] = {
    {nullptr, name_of(0), nullptr, taker<0>, nullptr},
    {nullptr, name_of(1), nullptr, taker<1>, nullptr},
    {nullptr, name_of(2), nullptr, taker<2, const void*>, nullptr},
    {nullptr, name_of(3), nullptr, taker<3, const void*>, nullptr},
    {nullptr, name_of(4), nullptr, taker<4, size_t>, nullptr},
    {nullptr, name_of(5), nullptr, taker<5, size_t>, nullptr},
    {nullptr, name_of(6), nullptr, taker<6, size_t, const void*>, nullptr},
    {nullptr, name_of(7), nullptr, taker<7, size_t, const void*>, nullptr},
    {nullptr, name_of(8), nullptr, giver<8>, nullptr},
    {nullptr, name_of(9), nullptr, giver<9>, nullptr},
    {nullptr, name_of(10), nullptr, giver<10, size_t>, nullptr},
    {nullptr, name_of(11), nullptr, giver<11, size_t>, nullptr},
    {nullptr, name_of(12), nullptr, giver<12, const void*>, nullptr},
    {nullptr, name_of(13), nullptr, giver<13, const void*>, nullptr},
    {nullptr, name_of(14), nullptr, giver<14, size_t>, nullptr},
    {nullptr, name_of(15), nullptr, giver<15, size_t>, nullptr},
    {nullptr, name_of(16), nullptr, giver<16, size_t, size_t>, nullptr},
    {nullptr, name_of(17), nullptr, giver<17, size_t, size_t>, nullptr},
    {nullptr, name_of(18), nullptr, giver<18, size_t, const void*>, nullptr},
    {nullptr, name_of(19), nullptr, giver<19, size_t, const void*>, nullptr},
};

namespace {

#define KARST_LISTED(from) \
  &g_operators[(from)], &g_operators[(from) + 1], &g_operators[(from) + 2], &g_operators[(from) + 3]
// For a library that comes late, and for modules that come after it (interpose/late.cc).
__attribute__((section("karst_stand_ins"), used))
StandIn* g_listed[] = {KARST_LISTED(0), KARST_LISTED(4), KARST_LISTED(8), KARST_LISTED(12), KARST_LISTED(16)};
static_assert(sizeof g_listed == kOperators * sizeof(void*));

KARST_NAMES(of_operators, &g_of_new.name, &g_of_delete.name)

const void* module_of(const void* address) {
  Dl_info of{};
  return address != nullptr && dladdr(address, &of) != 0 ? of.dli_fbase : nullptr;
}

}  // namespace

void find_operators(const void* malloc_behind, bool is_late) {
  // Where dlsym() finds nothing it takes memory for its words, and another library's has that freed: by an allocator of
  // the program's that is not ready for that before main(). So the first one stands for all, and is looked for first.
  const bool is_there =
      is_late || (is_defined(g_operators[0].name) && dlsym(RTLD_NEXT, g_operators[0].name) != nullptr);
  if (!is_late && is_there)
    for (StandIn& one : g_operators) one.behind = dlsym(RTLD_NEXT, one.name);
  const void* const allocator = module_of(malloc_behind);
  const bool has_its_own = allocator != nullptr && module_of(g_operators[0].behind) == allocator;
  for (StandIn& one : g_operators)
    if (!has_its_own || module_of(one.behind) != allocator) one.behind = nullptr;
  if (has_its_own && !is_late) redirect_slots(g_listed, g_listed + kOperators);
}

}  // namespace karst::interpose
