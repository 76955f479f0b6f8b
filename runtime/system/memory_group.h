// SPDX-License-Identifier: MIT
// How much memory the process's group (cgroup) still has. Where none is left the kernel does not refuse: it kills,
// maybe our host. So the arena asks before it grows, and leaves room for its host.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// At start, while /proc and /sys can still be seen: finds the group that has the least room, of all that bound the
/// process. Without one, or where it cannot be read, there is always room.
void find_memory_group();

/// True if so many bytes more leave an eighth of the group's memory free. Pages of files that the kernel can drop count
/// as free. Two system calls where there is a bound, four where it is near; async-signal-safe.
bool memory_group_has_room(std::uint64_t bytes);

}  // namespace karst::runtime
