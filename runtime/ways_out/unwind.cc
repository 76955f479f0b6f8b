// SPDX-License-Identifier: MIT
// Exceptions and forced unwinds: the exits of the calls that they leave, which pass no sled.
//
// Whoever throws and whoever catches, in whatever language: when the unwinder is about to go on in a frame (a cleanup
// or a handler), the language's personality routine tells it where by _Unwind_SetIP. That is the moment at which all
// frames inside of that one are gone, and they still lie on the stack. So the definition here, which comes before
// libgcc's in the search order, walks the stack from there to that frame and records an exit for each traced frame on
// the way. Frames are told apart by their place in the walk and the stack pointer in them, so recursion, other stacks
// and signal frames are no matter. A handler in untraced code is as good as any.
//
// libkarst is linked with no unwinder: a C program may have none. The one that is in use is looked up at the first
// call.
#include <dlfcn.h>

#include "format/event.h"
#include "runtime/modules/modules.h"
#include "runtime/modules/note_names.h"
#include "runtime/modules/tail_frames.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"
#include "runtime/watching/watch.h"
#include "runtime/ways_out/ways_out.h"

#ifdef KARST_STATIC
#pragma weak _Unwind_SetIP
#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetRegionStart
#pragma weak _Unwind_GetLanguageSpecificData
#pragma weak _Unwind_Backtrace
extern "C" {
void _Unwind_SetIP(karst::runtime::Context*, std::uintptr_t);
std::uintptr_t _Unwind_GetCFA(karst::runtime::Context*);
std::uintptr_t _Unwind_GetRegionStart(karst::runtime::Context*);
void* _Unwind_GetLanguageSpecificData(karst::runtime::Context*);
int _Unwind_Backtrace(int (*)(karst::runtime::Context*, void*), void*);
}
#endif

namespace karst::runtime {
namespace {

using namespace format;

#ifdef KARST_STATIC
/// The program's own, if it has one.
const Unwinder* find_unwinder(const void*) {
  static constinit Unwinder s_unwinder{_Unwind_SetIP, _Unwind_GetCFA, _Unwind_GetRegionStart,
                                       _Unwind_GetLanguageSpecificData, _Unwind_Backtrace};
  return &s_unwinder;
}
#else
Unwinder g_unwinder;
bool g_found;

bool find_in(void* where, Unwinder& u) {
  const auto find = [where](const char* name) { return dlsym(where, name); };
  u.set_ip = reinterpret_cast<decltype(u.set_ip)>(find("_Unwind_SetIP"));
  u.stack_pointer = reinterpret_cast<decltype(u.stack_pointer)>(find("_Unwind_GetCFA"));
  u.region_start = reinterpret_cast<decltype(u.region_start)>(find("_Unwind_GetRegionStart"));
  u.language_data = reinterpret_cast<decltype(u.language_data)>(find("_Unwind_GetLanguageSpecificData"));
  u.backtrace = reinterpret_cast<decltype(u.backtrace)>(find("_Unwind_Backtrace"));
  return u.set_ip != nullptr;
}

// Behind libkarst in the program's own order; or, when the caller came by dlopen with an unwinder of its own, the one
// that the caller is linked with.
const Unwinder* find_unwinder(const void* caller) {
  if (load(g_found)) return &g_unwinder;
  Unwinder u{};
  if (!find_in(RTLD_NEXT, u)) {
    Dl_info info{};
    void* module = nullptr;
    if (dladdr(caller, &info) != 0) module = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (module == nullptr || !find_in(module, u)) {
      void* library = dlopen("libgcc_s.so.1", RTLD_LAZY);
      if (library == nullptr || !find_in(library, u)) return nullptr;
    }
  }
  g_unwinder = u;  // others that are here at the same time write the same
  store(g_found, true);
  return &g_unwinder;
}
#endif

#ifndef KARST_STATIC
/// Code whose frames have the name of a zone as their language specific data (interpose/zone.h): the zone is open as
/// long as the frame is there.
struct ZoneFrames {
  std::uintptr_t begin, end;
};
ZoneFrames g_zone_frames[8];  // one of each library; the first without an end is free

bool are_zones(std::uintptr_t region) {
  for (const ZoneFrames& of : g_zone_frames) {
    if (of.end == 0) return false;
    if (of.begin <= region && region < of.end) return true;
  }
  return false;
}
#endif

struct Walk {
  const Unwinder& unwinder;
  std::uintptr_t until;  // stack pointer in the frame that execution goes on in
  bool found = false;
  std::uint32_t count = 0;
  std::uint32_t ids[128] = {};
};

void record_exits(Walk& walk) {
  for (std::uint32_t i = 0; i < walk.count; ++i) {
    const Event words[] = {make_mark(0, Mark::kUnwound), make_event(0, true, walk.ids[i])};
    record_group(words, 2);
  }
  walk.count = 0;
}

int step(Context* context, void* argument) {
  constexpr int kGoOn = 0;  // _URC_NO_REASON
  constexpr int kStop = 4;  // _URC_NORMAL_STOP
  auto& walk = *static_cast<Walk*>(argument);
  if (walk.unwinder.stack_pointer(context) == walk.until) {
    walk.found = true;
    return kStop;
  }
  const std::uintptr_t region = walk.unwinder.region_start(context);
  FunctionHere here = are_tail_frames(region)
                          ? FunctionHere{karst_function_of_tail_frame(walk.unwinder.stack_pointer(context)), false}
                          : function_of_region(region);
#ifndef KARST_STATIC
  if (are_zones(region)) here = {karst_note_id(static_cast<NoteName*>(walk.unwinder.language_data(context))), false};
#endif
  if (here.id == 0) return kGoOn;
  // -finstrument-functions makes cleanups that call the exit function, where the language has cleanups at all.
  if (here.own_exit && walk.unwinder.language_data(context) != nullptr) return kGoOn;
  // So many frames between two stops are real: recursion. The walk has never been seen to miss its end.
  if (walk.count == sizeof walk.ids / sizeof walk.ids[0]) record_exits(walk);
  walk.ids[walk.count++] = here.id;
  return kGoOn;
}

bool is_whole(const Unwinder& u) {
  return u.stack_pointer != nullptr && u.region_start != nullptr && u.language_data != nullptr &&
         u.backtrace != nullptr;
}

void record_gone(const Unwinder& unwinder, Context* context) {
  Walk walk{unwinder, unwinder.stack_pointer(context)};
  unwinder.backtrace(step, &walk);
  if (!walk.found) return;
  record_exits(walk);
  tail_frames_are_gone();
  calls_left(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), walk.until);
}

}  // namespace

void frames_are_gone(void* context, const void* caller) {
  if (!is_recording()) return;
  const Unwinder* unwinder = find_unwinder(caller);
  if (unwinder != nullptr && is_whole(*unwinder)) record_gone(*unwinder, static_cast<Context*>(context));
}

}  // namespace karst::runtime

void karst_frames_gone(karst::runtime::Context* context, const karst::runtime::Unwinder* unwinder) {
  using namespace karst::runtime;
  if (is_recording() && is_whole(*unwinder)) record_gone(*unwinder, context);
}

#ifndef KARST_STATIC
extern "C" {

/// Where the code of a library of interpose/ is whose frames name a zone. By constructors, one after the other.
__attribute__((visibility("default"))) void karst_api_zone_frames(const void* begin, const void* end) {
  using namespace karst::runtime;
  for (ZoneFrames& of : g_zone_frames) {
    if (of.end != 0) continue;
    of = {reinterpret_cast<std::uintptr_t>(begin), reinterpret_cast<std::uintptr_t>(end)};
    return;
  }
}

__attribute__((visibility("default"))) void karst_unwind_set_ip(karst::runtime::Context* context,
                                                                std::uintptr_t address) asm("_Unwind_SetIP");

void karst_unwind_set_ip(karst::runtime::Context* context, std::uintptr_t address) {
  using namespace karst::runtime;
  const Unwinder* unwinder = find_unwinder(__builtin_return_address(0));
  if (unwinder == nullptr) __builtin_trap();  // who calls this is linked with an unwinder
  unwinder->set_ip(context, address);
  if (is_recording() && is_whole(*unwinder)) record_gone(*unwinder, context);
}

}  // extern "C"
#endif
