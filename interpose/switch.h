// SPDX-License-Identifier: MIT
// Whether what a library stands before is recorded (format/interpose.h). Each library has one of its own.
//
//   if (is_off()) return g_read(fd, to, size);      the first thing that a function does: a load and a branch
//   KARST_NAMES(read, &g_read_zone.name)            names whose notes and zones end, and begin, with it
#pragma once
#include "format/interpose.h"
#include "karst/karst.h"

namespace karst::interpose {

/// A library that is preloaded is on from the first call. One that comes late is switched on when it has been told how.
extern "C" __attribute__((visibility("hidden"))) format::InterposeSwitch karst_interpose_switch;

/// For the library's constructor. True: it came late. It is off then, and what it stands before is found, but nothing
/// is redirected yet.
bool begin_standing();
/// The end of the constructor of one that came late.
void begin_redirecting();
/// Of a library that can stand before what the program has in itself: does so, as far as karst has made a way by now.
/// Called in a process that runs.
__attribute__((weak, visibility("hidden"))) void stand_inside();

__attribute__((always_inline)) inline format::InterposeMode mode() {
  return static_cast<format::InterposeMode>(__atomic_load_n(&karst_interpose_switch.mode, __ATOMIC_RELAXED));
}
inline void set_mode(format::InterposeMode mode) {
  __atomic_store_n(&karst_interpose_switch.mode, static_cast<uint32_t>(mode), __ATOMIC_RELAXED);
}
__attribute__((always_inline)) inline bool is_off() {
  return __builtin_expect(mode() == format::InterposeMode::kOff, 0);
}

#define KARST_NAMES(id, ...) __attribute__((section("karst_names"), used)) karst_name* names_##id[] = {__VA_ARGS__};

}  // namespace karst::interpose
