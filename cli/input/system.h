// SPDX-License-Identifier: MIT
// --system: what of a program's calls to its system is recorded, by libraries that stand before it (interpose/).
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "collect/live/system.h"

namespace karst::cli {

/// "locks", "memory=512K": as the user wrote them.
using SystemArguments = std::vector<std::string>;

/// `system` must live until the command line was parsed.
void add_system_option(Command command, SystemArguments& system);

struct SystemChoice {
  std::vector<std::string> libraries;       ///< paths
  std::string how;                          ///< for the variable KARST_SYSTEM (format/system.h); empty: nothing to say
  std::vector<collect::SystemWish> wishes;  ///< the same for a process that runs

  /// Seen also where a program has them in itself (PlainChoice::detours).
  std::vector<std::string> functions() const;
};
/// Error: a word that is none, or a library that is not there.
Result<SystemChoice> system_choice(const SystemArguments& system);

/// All of them, of a process that runs, and says so. Returns an exit status.
int begin_systems(collect::Attached& target, const std::vector<collect::SystemWish>& wishes);
/// No wish: all that there are.
int end_systems(collect::Attached& target, const std::vector<collect::SystemWish>& wishes);
/// The same without words; for karst off --detach.
Status end_all_systems(collect::Attached& target);

}  // namespace karst::cli
