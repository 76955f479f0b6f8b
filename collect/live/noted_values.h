// SPDX-License-Identifier: MIT
// Which values a process notes while it runs (format/values.h): what `karst on --args` changes.
//
// The arena cannot carry such a wish: a forked child with fewer rights may write to it, and would choose what of its
// parent's memory becomes readable. So the wish goes into the process's private memory, which the kernel opens to those
// who may trace the process. Of what the arena says, functions' addresses and modules are held against /proc/PID/maps
// and the memory itself before a name is believed.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "choice/value_choice.h"
#include "collect/launch/attach.h"

namespace karst::collect {

/// What note_values() has done.
struct NotingBegun {
  std::size_t meant = 0;              ///< functions that a pattern matches
  std::size_t noted = 0;              ///< of them, those whose values are noted now
  std::vector<std::uint64_t> begun;   ///< addresses of those whose values were not noted before
  std::vector<std::string> problems;  ///< why others are not, once for each module
};

/// The choice's values become notes from now on; their functions are traced, and the process is on. Error: why nothing
/// can be noted; what is traced may have changed then.
Result<NotingBegun> note_values(Attached& target, const choice::ValueChoice& choice, std::chrono::milliseconds limit);

/// The values of these functions are not noted any more; empty: of none. Returns how many functions' were.
Result<std::size_t> end_noting(Attached& target, const std::vector<std::uint64_t>& functions,
                               std::chrono::milliseconds limit);

}  // namespace karst::collect
