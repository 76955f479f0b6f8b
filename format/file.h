// SPDX-License-Identifier: MIT
// What programs ask of files and sockets: zones named after functions, whose arguments say which descriptor it was
// (format/values.h). libkarst-files.so, libkarst-net.so and libkarst-time.so record them (interpose/files.cc and the
// like), analysis/files.h reads them.
//
//   path, address   texts as the program gave them. One that is too long for a value lies whole in a kText note within
//                   the zone
//   returned        kResult: a number, or what errno said, negative, as the kernel has it
#pragma once

namespace karst::format {

/// Logs of what is open: of each descriptor, and of what relative paths begin at. A process says so at its start, and
/// of descriptors again before what it said is overwritten. Then the working directory goes as kDirectoryDescriptor.
inline constexpr char kDescriptorIs[] = "descriptor %d is %s";
inline constexpr int kDirectoryDescriptor = -100;  ///< AT_FDCWD
/// What a socket without a peer is called: this, and its own address. With one: the peer's address.
inline constexpr char kSocketAt[] = "socket at ";
inline constexpr char kDirectoryIs[] = "working directory is %s";

}  // namespace karst::format
