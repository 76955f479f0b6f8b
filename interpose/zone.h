// SPDX-License-Identifier: MIT
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

#include "format/values.h"
#include "interpose/switch.h"
#include "karst/karst.h"

namespace karst::interpose {

/// A kind of zone, and a function whose frame is there while such a zone is open.
struct Zone {
  karst_name name;  // first: libkarst takes a zone for its name (runtime/ways_out/unwind.cc)
  const char* values;
  uint32_t values_size;
  long (*inside)(long (*call)(void*), void* given);
};

/// A frame of inside() names its zone, as language specific data. So libkarst can end the zone where a thread is
/// cancelled in its call, or calls pthread_exit() in a handler (runtime/ways_out/unwind.cc). A cleanup of libc's would
/// not do: after a handler jumped out of the call it would still be there, and run on what that stack has become.
#define KARST_ZONE_KIND(id, text, description)                                                           \
  extern karst::interpose::Zone g_##id##_zone;                                                           \
  __attribute__((noinline, section("karst_zones"))) long inside_##id(long (*call)(void*), void* given) { \
    asm volatile(".cfi_lsda 0x1b, %c0" : : "i"(&g_##id##_zone)); /* pcrel | sdata4 */                    \
    const long result = call(given);                                                                     \
    asm volatile(""); /* as a tail call it would have no frame */                                        \
    return result;                                                                                       \
  }                                                                                                      \
  constinit karst::interpose::Zone g_##id##_zone{                                                        \
      {text, nullptr, 0, 0}, description, sizeof(description) - 1, inside_##id};                         \
  KARST_NAMES(id, &g_##id##_zone.name)

/// Whether calls of this thread are to be zones.
inline bool tells() {
  bool (*found)();
  KARST_FIND_(found, tells);
  return found != nullptr && found();
}

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

/// Bytes from memory of the program's that may not be there: how many could be read. Of a text: up to its NUL.
inline uint32_t copy_in(const void* from, void* to, uint32_t size, bool is_text) {
  uint32_t (*read)(const void*, void*, uint32_t, bool);
  KARST_FIND_(read, read);
  return read != nullptr ? read(from, to, size, is_text) : 0;
}

constexpr uint32_t kEndsByNul = 0xffffffff;
struct Text {
  const char* address;
  uint32_t size = kEndsByNul;
};

/// Values as a note has them, in the order of the zone's description.
class Values {
 public:
  /// An integer or an address. Too many are left out; the reader says so.
  void add(int value) { add(uint64_t{static_cast<uint32_t>(value)}); }
  void add(unsigned value) { add(uint64_t{value}); }
  void add(long value) { add(static_cast<uint64_t>(value)); }
  void add(uint64_t value) {
    if (used_ + 1 + sizeof value > kMost) return;
    unsigned char* const size = &bytes_[used_++];
    for (; value != 0; value >>= 8) bytes_[used_++] = static_cast<unsigned char>(value);
    *size = static_cast<unsigned char>(&bytes_[used_] - size - 1);
  }

  /// A text that ends by a NUL, or is `size` bytes of ours. A bad address is noted as such.
  void add(Text text) {
    if (text.address == nullptr) return add_head(format::kValueNull);
    if (used_ + 1 + format::kMostValueBytes + 1 > kMost) return add_head(format::kValueNoRoom);
    unsigned char* const to = &bytes_[used_ + 1];
    uint32_t size = 0;
    if (text.size != kEndsByNul) {
      size = text.size < format::kMostValueBytes ? text.size : format::kMostValueBytes;
      __builtin_memcpy(to, text.address, size);
    } else {
      const uint32_t got = copy_text(text.address, to, format::kMostValueBytes + 1);
      while (size < got && to[size] != 0) ++size;
      if (size == got && got <= format::kMostValueBytes) return add_head(format::kValueUnreadable);
    }
    const bool is_cut = size > format::kMostValueBytes;
    if (is_cut && cut_ == nullptr) cut_ = text.address;
    if (is_cut) size = format::kMostValueBytes;
    bytes_[used_] = static_cast<unsigned char>((is_cut ? format::kValueCut : 0) + size);
    used_ += 1 + size;
  }
  void add_null() { add_head(format::kValueNull); }

  /// The first text that was too long for a value; null: there is none.
  const char* cut_text() const { return cut_; }

  void note_arguments(Zone& zone) const {
    KARST_NOTE_(void, arguments, (karst_name*, const char*, uint32_t, const void*, uint32_t),
                (&zone.name, zone.values, zone.values_size, bytes_, used_))
  }
  void note_returned(Zone& zone) const {
    KARST_NOTE_(void, returned, (karst_name*, const char*, uint32_t, const void*, uint32_t),
                (&zone.name, zone.values, zone.values_size, bytes_, used_))
  }

 private:
  static constexpr uint32_t kMost = format::kMostValuesInNote - 1;

  static uint32_t copy_text(const char* from, unsigned char* to, uint32_t size) {
    return copy_in(from, to, size, true);
  }
  void add_head(uint8_t head) {
    if (used_ < kMost) bytes_[used_++] = head;
  }

  unsigned char bytes_[kMost];
  uint32_t used_ = 0;
  const char* cut_ = nullptr;
};

template <typename>
constexpr bool kIsPointer = false;
template <typename To>
constexpr bool kIsPointer<To*> = true;

template <typename Result>
long as_long(Result result) {
  if constexpr (kIsPointer<Result>)
    return reinterpret_cast<long>(result);
  else
    return static_cast<long>(result);
}

template <typename Result>
Result from_long(long result) {
  if constexpr (kIsPointer<Result>)
    return reinterpret_cast<Result>(result);
  else
    return static_cast<Result>(result);
}

/// Notes a text whole, as far as a note goes, in the zone that is open. Apart, as it needs much stack.
__attribute__((noinline, cold)) inline void note_text(const char* text) {
  constexpr uint32_t kMostWhole = 2000;
  unsigned char whole[kMostWhole];
  const uint32_t size = copy_in(text, whole, sizeof whole, true);
  if (size != 0) karst_text_sized(reinterpret_cast<const char*>(whole), size);
}

template <typename Call>
auto inside(Zone& zone, Call call) {
  const long result = zone.inside([](void* called) { return as_long((*static_cast<Call*>(called))()); }, &call);
  return from_long<decltype(call())>(result);
}

/// What `call` returns, in a zone. Never inlined, so that the way of a call without a zone stays short.
template <typename Call>
__attribute__((noinline)) auto in_zone(Zone& zone, const Values& given, Call call) {
  given.note_arguments(zone);
  karst_zone_enter_(&zone.name);
  const auto result = inside(zone, call);
  karst_name* name = &zone.name;
  karst_zone_leave_(&name);
  return result;
}

}  // namespace karst::interpose
