// SPDX-License-Identifier: MIT
// Names of system calls, as libseccomp knows them. Apart from all else in this room, which needs no library.
#pragma once
#include <cstdint>
#include <string>

namespace karst::analysis {

/// The name of a Linux system call on x86-64, like "futex"; empty when the number, which comes from a file, has none.
/// Any thread may call it.
std::string syscall_name(std::uint32_t number);

}  // namespace karst::analysis
