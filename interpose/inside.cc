// SPDX-License-Identifier: MIT
// An allocator that the program has in itself, as one that is linked statically: within the program nobody calls it by
// a name, so nothing can stand before it by that. karst has made detours for its functions (format/patch_table.h):
// calls of them come here.
//
// What is called here may call others of these, or by dlsym(RTLD_NEXT) what memory.cc stands before. So what an inner
// call has recorded is not recorded again, as for operators.
#include "interpose/memory_records.h"
#include "interpose/operators.h"
#include "interpose/switch.h"

namespace karst::interpose {
namespace {

using format::kAllocatorFunctions;

enum : size_t { kMalloc, kCalloc, kRealloc, kFree, kMemalign, kAligned, kPosix, kValloc, kPvalloc, kFunctions };
static_assert(kFunctions == format::kFirstOperator);

const void* g_behind[kFunctions];

template <typename Result, typename... Given>
Result call_behind(size_t function, Given... given) {
  return reinterpret_cast<Result (*)(Given...)>(const_cast<void*>(g_behind[function]))(given...);
}

void* told(RecordKind& kind, void* address, size_t size) {
  return address != nullptr && address == t_memory.taken ? address : allocated(kind, address, size);
}

template <size_t kFunction>
void* take(size_t size) {
  if (is_off()) return call_behind<void*>(kFunction, size);
  t_memory.taken = nullptr;
  return told(kFunction == kMalloc ? g_of_malloc : g_of_aligned, call_behind<void*>(kFunction, size), size);
}

template <size_t kFunction>
void* take_aligned(size_t alignment, size_t size) {
  if (is_off()) return call_behind<void*>(kFunction, alignment, size);
  t_memory.taken = nullptr;
  return told(g_of_aligned, call_behind<void*>(kFunction, alignment, size), size);
}

int take_posix(void** to, size_t alignment, size_t size) {
  if (is_off()) return call_behind<int>(kPosix, to, alignment, size);
  t_memory.taken = nullptr;
  const int failed = call_behind<int>(kPosix, to, alignment, size);
  told(g_of_aligned, failed == 0 ? *to : nullptr, size);
  return failed;
}

void* take_zeroed(size_t count, size_t size) {
  if (is_off()) return call_behind<void*>(kCalloc, count, size);
  size_t all = 0;
  if (__builtin_mul_overflow(count, size, &all)) all = SIZE_MAX;
  t_memory.taken = nullptr;
  return told(g_of_calloc, call_behind<void*>(kCalloc, count, size), all);
}

void* resize(void* old, size_t size) {
  if (is_off()) return call_behind<void*>(kRealloc, old, size);
  const bool old_known = is_given_back(old);
  const void* const outer = t_memory.deleting;
  t_memory.deleting = old;
  t_memory.taken = nullptr;
  void* const address = call_behind<void*>(kRealloc, old, size);
  t_memory.deleting = outer;
  if (address != nullptr && address == t_memory.taken) return address;
  return reallocated(old, old_known, address, size);
}

void give(void* address) {
  if (is_off()) return call_behind<void>(kFree, address);
  if (address != nullptr && address != t_memory.deleting && is_freed(address)) record(g_of_free, number(address));
  const void* const outer = t_memory.deleting;
  t_memory.deleting = address;
  call_behind<void>(kFree, address);
  t_memory.deleting = outer;
}

template <typename Function>
const void* code(Function* function) {
  return reinterpret_cast<const void*>(function);
}

}  // namespace

bool stand_before_the_programs_own() {
  const void* (*find)(const char*);
  bool (*open)(const char*, const void*);
  KARST_FIND_(find, find_detour);
  KARST_FIND_(open, open_detour);
  if (find == nullptr || open == nullptr) return false;
  const void* const ours[] = {code(take<kMalloc>),
                              code(take_zeroed),
                              code(resize),
                              code(give),
                              code(take_aligned<kMemalign>),
                              code(take_aligned<kAligned>),
                              code(take_posix),
                              code(take<kValloc>),
                              code(take<kPvalloc>)};
  static_assert(sizeof ours / sizeof ours[0] == kFunctions);
  const void* found[kFunctions + kOperators];
  bool any = false;
  for (size_t i = 0; i < kFunctions + kOperators; ++i) {
    found[i] = find(kAllocatorFunctions[i]);
    any |= found[i] != nullptr;
    // Those of another allocator are called by slots.
    const void* const behind = i < kFunctions ? nullptr : g_operators[i - kFunctions].behind;
    if (found[i] != nullptr && behind != nullptr && behind != found[i]) return false;
  }
  if (!any) return false;
  bool all = true;
  for (size_t i = 0; i < kFunctions + kOperators; ++i) {
    if (found[i] == nullptr) continue;
    (i < kFunctions ? g_behind[i] : g_operators[i - kFunctions].behind) = found[i];
    // Only now, as threads may call it at once.
    all &= open(kAllocatorFunctions[i], i < kFunctions ? ours[i] : g_operators[i - kFunctions].ours());
  }
  return all;
}

void stand_inside() {
  static bool s_stands;  // in a process that runs: its calls were counted as such that nobody sees
  if (s_stands || !stand_before_the_programs_own()) return;
  s_stands = true;
  uint32_t seen = 0;
  for (const char* name : kAllocatorFunctions) find_behind(name, nullptr, nullptr, seen);
  karst_interpose_switch.inside -= karst_interpose_switch.inside < seen ? karst_interpose_switch.inside : seen;
}

}  // namespace karst::interpose
