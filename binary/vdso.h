// SPDX-License-Identifier: MIT
// The kernel's own library in every process. Private to binary/.
#pragma once
#include <filesystem>

#include "base/result.h"

namespace karst::binary {

/// A module's name that stands for the vdso, which is no file: `[vdso]` in /proc, `linux-vdso.so.1` to the loader.
bool is_vdso(const std::filesystem::path& module);

/// A file in memory with this process's vdso, which is every process's of the running kernel; its build-id tells one
/// kernel's from another's. Error: there is none.
Result<int> open_vdso();

}  // namespace karst::binary
