// Calls of functions that stand behind ours, as zones with values (format/values.h): what they were given, and what
// they returned.
//
//   KARST_ZONE_KIND(read, "read", "fd:i4,size:u8|returned:i8")     one for each kind of call
//   enter_names({&g_read_zone});                              in the library's constructor
//   Values given; given.add(descriptor); given.add(size);
//   return in_zone(g_read_zone, given, [&] { return g_read(descriptor, to, size); });
//
// Each library has one source file that includes this.
#pragma once
#include <stdint.h>

#include <initializer_list>

#include "karst/karst.h"

namespace karst::interpose {

/// A kind of zone, and a function whose frame is there while such a zone is open.
struct Zone {
  karst_name name;  // first: libkarst takes a zone for its name (runtime/hooks/unwind.cc)
  const char* values;
  uint32_t values_size;
  long (*inside)(long (*call)(void*), void* given);
};

/// A frame of inside() names its zone, as language specific data. So libkarst can end the zone where a thread is
/// cancelled in its call, or calls pthread_exit() in a handler (runtime/hooks/unwind.cc). A cleanup of libc's would not
/// do: after a handler jumped out of the call it would still be there, and run on what that stack has become.
#define KARST_ZONE_KIND(id, text, description)                                                           \
  extern karst::interpose::Zone g_##id##_zone;                                                           \
  __attribute__((noinline, section("karst_zones"))) long inside_##id(long (*call)(void*), void* given) { \
    asm volatile(".cfi_lsda 0x1b, %c0" : : "i"(&g_##id##_zone)); /* pcrel | sdata4 */                    \
    const long result = call(given);                                                                     \
    asm volatile(""); /* as a tail call it would have no frame */                                        \
    return result;                                                                                       \
  }                                                                                                      \
  constinit karst::interpose::Zone g_##id##_zone{                                                        \
      {text, nullptr, 0, 0}, description, sizeof(description) - 1, inside_##id};

/// The code of all inside(), by the linker.
extern "C" __attribute__((visibility("hidden"))) const char __start_karst_zones[];
extern "C" __attribute__((visibility("hidden"))) const char __stop_karst_zones[];

/// Enters the names, so that no zone's begin is late by it: karst may have to be asked.
inline void enter_names(std::initializer_list<Zone*> zones) {
  void (*tell_frames)(const void*, const void*);
  KARST_FIND_(tell_frames, zone_frames);
  if (tell_frames != nullptr) tell_frames(__start_karst_zones, __stop_karst_zones);
  void (*enter)(karst_name*, const char*, uint32_t);
  KARST_FIND_(enter, name_with_values);
  if (enter == nullptr) return;
  for (Zone* zone : zones) enter(&zone->name, zone->values, zone->values_size);
}

/// Values as a note has them, in the order of the zone's description.
class Values {
 public:
  /// An integer or an address. Too many are left out; the reader says so.
  void add(uint64_t value) {
    if (used_ + 1 + sizeof value > kMost) return;
    unsigned char* const size = &bytes_[used_++];
    for (; value != 0; value >>= 8) bytes_[used_++] = static_cast<unsigned char>(value);
    *size = static_cast<unsigned char>(&bytes_[used_] - size - 1);
  }

  void note_arguments(Zone& zone) const {
    KARST_NOTE_(void, arguments, (karst_name*, const char*, uint32_t, const void*, uint32_t),
                (&zone.name, zone.values, zone.values_size, bytes_, used_))
  }
  void note_returned(Zone& zone) const {
    KARST_NOTE_(void, returned, (karst_name*, const char*, uint32_t, const void*, uint32_t),
                (&zone.name, zone.values, zone.values_size, bytes_, used_))
  }

 private:
  static constexpr uint32_t kMost = 128;
  unsigned char bytes_[kMost];
  uint32_t used_ = 0;
};

/// What `call` returns, in a zone. Never inlined, so that the way of a call without a zone stays short.
template <typename Call>
__attribute__((noinline)) auto in_zone(Zone& zone, const Values& given, Call call) {
  given.note_arguments(zone);
  karst_zone_enter_(&zone.name);
  const long result =
      zone.inside([](void* called) { return static_cast<long>((*static_cast<Call*>(called))()); }, &call);
  karst_name* name = &zone.name;
  karst_zone_leave_(&name);
  return static_cast<decltype(call())>(result);
}

}  // namespace karst::interpose
