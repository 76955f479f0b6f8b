// SPDX-License-Identifier: MIT
// Where things are in the kernel's records of its tracepoints: as tracefs describes them, read by libtraceevent.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "kernel/tracefs_place.h"

struct tep_event;
struct tep_handle;

namespace karst::kernel {

/// A part of a record, in bytes.
struct Field {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

/// 0 if the record is too short.
inline std::uint64_t number_at(std::span<const std::byte> record, const Field& field) {
  std::uint64_t value = 0;
  if (field.size <= sizeof value && field.offset + std::uint64_t{field.size} <= record.size())
    std::memcpy(&value, record.data() + field.offset, field.size);
  return value;
}

/// TRACE_FLAG_HARDIRQ and TRACE_FLAG_SOFTIRQ, in a record's common_flags.
inline constexpr std::uint8_t kInInterrupt = 0x08 | 0x10;

/// What is asked for and not there is remembered, and reads as zeroes.
class EventFormats {
 public:
  explicit EventFormats(const TracefsPlace& place);
  ~EventFormats();
  EventFormats(const EventFormats&) = delete;
  EventFormats& operator=(const EventFormats&) = delete;

  tep_event* event(const char* system, const char* name);
  Field field(tep_event* of, const char* name);
  /// What the record says in common_type, and perf_event_open() takes.
  static std::uint16_t id(const tep_event* of);
  /// The last name that was missing; empty: none was.
  const std::string& missing() const { return missing_; }

 private:
  std::string events_;  // their directory
  tep_handle* formats_;
  std::string missing_;
};

}  // namespace karst::kernel
