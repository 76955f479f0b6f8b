// SPDX-License-Identifier: MIT
// A library's begin: preloaded, or brought into a process that runs (collect/live/system.h). What it shows of itself.
#include "interpose/module.h"
#include "interpose/next.h"

// All functions of the library that stand before others, and all names of its zones and records, by the linker.
// Pointers, as a compiler may leave room between larger ones.
extern "C" {
__attribute__((visibility("hidden"))) extern karst::interpose::StandIn* __start_karst_stand_ins[];
__attribute__((visibility("hidden"))) extern karst::interpose::StandIn* __stop_karst_stand_ins[];
__attribute__((visibility("hidden"))) extern karst_name* __start_karst_names[];
__attribute__((visibility("hidden"))) extern karst_name* __stop_karst_names[];

__attribute__((visibility("hidden"))) constinit karst::format::InterposeSwitch karst_interpose_switch = {
    karst::format::kInterposeVersion,
    static_cast<uint32_t>(karst::format::InterposeMode::kOn),
    0,
    0,
    0,
    0,
    0,
    0,
    karst::format::InterposeProblem::kNone,
    0,
    0,
    0};
extern __attribute__((visibility("default"), alias("karst_interpose_switch")))
karst::format::InterposeSwitch karst_interpose;
}

namespace karst::interpose {
namespace {

/// glibc has these from 2.38 on.
bool may_be_missing(const char* name) { return begins_with(name, "__isoc23_"); }

/// One at a time; another one's work is as good as ours.
bool g_redirecting;

bool redirect_all() {
  format::InterposeSwitch& s = karst_interpose_switch;
  if (__atomic_exchange_n(&g_redirecting, true, __ATOMIC_ACQUIRE)) return true;
  const Redirected done = redirect_slots(__start_karst_stand_ins, __stop_karst_stand_ins);
  s.problem = done.is_known ? format::InterposeProblem::kNone : format::InterposeProblem::kMappings;
  s.slots += done.slots;
  s.left = done.left;
  s.modules = done.modules;
  __atomic_store_n(&g_redirecting, false, __ATOMIC_RELEASE);
  return done.is_known;
}

}  // namespace

void find_all() {
  const bool is_late = karst_interpose_switch.came_late != 0;
  uint32_t inside = 0;
  for (StandIn** one = __start_karst_stand_ins; one != __stop_karst_stand_ins; ++one) {
    if (*one == nullptr) continue;
    StandIn& in = **one;
    uint32_t is_inside = 0;
    if (is_late) in.behind = find_behind(in.name, in.version, in.ours(), is_inside);
    if (in.found == nullptr) continue;
    inside += is_inside;
    const void* behind = in.behind;  // what the program has in itself is not it, but ours may have to call one
    if (behind == nullptr && (!may_be_missing(in.name) || is_defined(in.name)))
      behind = in.version != nullptr ? dlvsym(RTLD_NEXT, in.name, in.version) : dlsym(RTLD_NEXT, in.name);
    using Pointer __attribute__((may_alias)) = const void*;
    __atomic_store_n(static_cast<Pointer*>(in.found), behind, __ATOMIC_RELAXED);
  }
  karst_interpose_switch.inside = inside;
}

bool begin_standing() {
  format::InterposeSwitch& s = karst_interpose_switch;
  s.came_late = came_late() ? 1 : 0;
  if (s.came_late != 0) set_mode(format::InterposeMode::kOff);
  s.names = address_of(__start_karst_names);
  s.names_end = address_of(__stop_karst_names);
  find_all();
  return s.came_late != 0;
}

void begin_redirecting() { redirect_all(); }

}  // namespace karst::interpose

/// karst has a thread call these where modules or detours have come (collect/inject/load.h). Null: the problem says why
/// not.
KARST_EXPORT const void* karst_interpose_again(const char*) {
  if (karst::interpose::stand_inside != nullptr) karst::interpose::stand_inside();
  return karst_interpose_switch.came_late == 0 || karst::interpose::redirect_all() ? &karst_interpose_switch : nullptr;
}
KARST_EXPORT const char* karst_interpose_problem() { return "its mappings cannot be read (no free descriptor?)"; }
