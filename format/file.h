// What programs ask of files and sockets: zones named after functions, whose arguments say which descriptor it was
// (format/values.h). libkarst-files.so, libkarst-net.so and libkarst-time.so record them (interpose/files.cc and the
// like), analysis/files.h reads them.
//
//   path, address   texts as the program gave them. One that is too long for a value lies whole in a kText note within
//                   the zone
//   returned        kResult: a number, or what errno said, negative, as the kernel has it
#pragma once

namespace karst::format {

/// Logs at the start of a process, of each descriptor that was open then, and of what relative paths begin at.
inline constexpr char kDescriptorIs[] = "descriptor %d is %s";
inline constexpr char kDirectoryIs[] = "working directory is %s";

}  // namespace karst::format
