// SPDX-License-Identifier: MIT
// Functions of libc's whose calls are zones with all they were given and what they returned.
//
//   KARST_ZONE_KIND(read, "read", "fd:i4,size:u8|:r8")     a kind of zone; its name is entered at its first use
//   KARST_BEFORE(read)                                finds what stands behind ours: g_read
//   KARST_EXPORT ssize_t read(int fd, void* to, size_t size) {
//     return told(g_read_zone, KARST_GIVEN(fd, size), [&] { return g_read(fd, to, size); });
//   }
//
// A call that is not to be told is libc's alone. errno is that of the function behind, and so is what memory it
// touches: texts that the program gave are copied without touching what may not be there.
#pragma once
#include <errno.h>

#include "interpose/next.h"
#include "interpose/zone.h"

namespace karst::interpose {

/// For a library's constructor; begin_redirecting() is to follow if it returns true.
inline bool begin_telling() {
  const bool is_late = begin_standing();
  void (*tell_frames)(const void*, const void*);
  KARST_FIND_(tell_frames, zone_frames);
  if (tell_frames != nullptr) tell_frames(__start_karst_zones, __stop_karst_zones);
  return is_late;
}

/// The same for one that tells of descriptors: also says what is open.
inline void begin_telling_files() {
  void (*say_descriptors)(bool again);
  KARST_FIND_(say_descriptors, say_descriptors);
  const bool is_late = begin_telling();
  if (is_late) {
    // On from here: no change is missed between what is said of a descriptor and the first call that is told.
    set_mode(format::InterposeMode::kOn);
    begin_redirecting();
  }
  if (say_descriptors != nullptr) say_descriptors(is_late);
}

// Apart, so that values are on the stack only while they are noted: a handler may have little of it.
template <typename Given>
__attribute__((noinline)) const char* note_given(Zone& zone, const Given& given) {
  Values arguments;
  given(arguments);
  arguments.note_arguments(zone);
  return arguments.cut_text();
}
template <typename Result, typename Tell>
__attribute__((noinline)) void note_returned(Zone& zone, Result result, const Tell& tell) {
  Values returned;
  tell(returned, as_long(result));
  returned.note_returned(zone);
}

/// What `call` returns, in a zone if the thread's calls are told. `given(values)` adds what it was given,
/// `tell(values, result)` what it returned.
template <typename Call, typename Given, typename Tell>
auto in_told_zone(Zone& zone, Given given, Call call, Tell tell) -> decltype(call()) {
  if (is_off() || !tells()) return call();
  const char* cut = note_given(zone, given);
  karst_zone_enter_(&zone.name);
  if (cut != nullptr) note_text(cut);
  const auto result = inside(zone, call);
  note_returned(zone, result, tell);
  karst_name* name = &zone.name;
  karst_zone_leave_(&name);
  return result;
}

/// A result of -1 becomes what errno says, negative.
inline long with_errno(long result) { return result == -1 ? -long{errno} : result; }

/// Arguments that are values as they are.
#define KARST_GIVEN(...) [&](karst::interpose::Values& values) { karst::interpose::add_all(values, __VA_ARGS__); }

template <typename... Given>
void add_all(Values& values, Given... given) {
  (values.add(given), ...);
}

/// A number, or -1 and errno.
template <typename Call, typename Given>
auto told(Zone& zone, Given given, Call call) -> decltype(call()) {
  return in_told_zone(zone, given, call, [](Values& returned, long result) { returned.add(with_errno(result)); });
}
/// And what else it returned: `more(values, result)`.
template <typename Call, typename Given, typename More>
auto told(Zone& zone, Given given, Call call, More more) -> decltype(call()) {
  return in_told_zone(zone, given, call, [&](Values& returned, long result) {
    returned.add(with_errno(result));
    more(returned, result);
  });
}

}  // namespace karst::interpose
