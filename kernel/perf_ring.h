// SPDX-License-Identifier: MIT
// What a CPU's events of perf_event_open write: records one behind the other in a ring that the kernel shares with us.
#pragma once
#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace karst::kernel {

/// Opens an event of a thread, and of those that it will make, on one CPU (-1: on any). `attributes` say the rest; the
/// event is closed on exec. Returns its descriptor, or -1 with errno set.
int open_perf_event(perf_event_attr attributes, pid_t thread, int cpu);

/// Why the kernel refused one, and what would have to be done: a sentence for people.
std::string why_perf_is_refused(int error);

/// What stands in a record; 0 where it is too short.
template <typename T>
T perf_value(std::span<const std::byte> record, std::size_t offset) {
  T value{};
  if (offset <= record.size() && sizeof value <= record.size() - offset)
    std::memcpy(&value, record.data() + offset, sizeof value);
  return value;
}

/// One thread at a time. Plain values: who has it closes it.
struct PerfRing {
  int fd = -1;
  std::uint16_t cpu = 0;
  std::byte* base = nullptr;
  std::size_t mapped = 0;

  /// Maps all of them with `bytes` each, a power of two and of whole pages. False, with errno set: none is mapped.
  static bool map_all(std::span<PerfRing*> rings, std::size_t bytes);
  void close();
  /// Gives each record that is there to `take`, whose bytes are valid until it returns. Returns how many bytes they
  /// were; `copy` is room for one that wraps around.
  std::uint64_t drain(std::vector<std::byte>& copy, const std::function<void(std::span<const std::byte>)>& take);
  /// Bytes of records that it holds at most.
  std::uint64_t room() const;
};

/// Opens events of a further thread that write to the ring, which is mapped. `opened` gets the descriptor, if there is
/// one: the thread may have ended, or the CPU gone offline.
Status open_beside(const perf_event_attr& attributes, pid_t thread, const PerfRing& ring, std::vector<int>& opened);

}  // namespace karst::kernel
