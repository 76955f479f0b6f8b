// SPDX-License-Identifier: MIT
// Files that other processes name: links in /proc/PID/fd, paths in /proc/PID/maps, programs that are reported.
//
// What such a name leads to can change between any look at it and its opening, and to open a device or a FIFO does
// something. So each is first held by O_PATH, which opens nothing, then looked at, then opened by that descriptor.
#pragma once
#include <cstdint>
#include <string>

#include "collect/launch/session.h"

namespace karst::collect {

/// symbols::open_regular() as a Descriptor. None: it is something else, or cannot be opened; errno says why (EINVAL for
/// something else).
Descriptor open_regular_file(const std::string& path);

/// Opens a memfd (of small pages). None, and errno, as above. `flags`: O_RDONLY, O_RDWR.
Descriptor open_memfd(const std::string& path, int flags);

/// Opens the regular file behind `path` if it is the one with this device and inode, to read and write; see
/// may_be_arena_file(). None: it is another one, or cannot be opened; errno says why (EINVAL for another one).
Descriptor open_arena_file(const std::string& path, unsigned major, unsigned minor, std::uint64_t inode);

}  // namespace karst::collect
