// SPDX-License-Identifier: MIT
// A process that runs and has no sleds: its functions are patched where it stands.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/inject/patch.h"
#include "collect/launch/plain_programs.h"

namespace karst::collect {

struct PlainAttach {
  PlainChoice choice;
  format::RuntimeOptions options;  ///< what does not follow from the choice
  /// Stacks that the program switches have lanes; none: if it is known to switch some.
  std::optional<bool> stacks{};
};

/// Why one of the modules is known to switch stacks (patch/stack_switchers.h); empty: none is.
std::string stack_switcher(const PlainPrograms& programs);

/// libkarst is in the process, which is traced from here on, in all its threads. `user`: the process's. What was
/// patched of which module stands in `programs`. Errors are phrases behind the process's name; it then runs on as
/// before.
Result<PatchedCode> patch_process(const HeldProcess& process, uid_t user, const PlainAttach& how,
                                  PlainPrograms& programs);

/// A traced process gets stubs of detours for those of the functions that its program has in itself
/// (format/patch_table.h), unless it has some. Their jumps are not written. Nothing is done if there are no such
/// functions. Error: which of them can have none and why, or why none can; the process runs on as before.
Status bring_detours(const HeldProcess& process, uid_t user, const std::vector<std::string>& functions);

}  // namespace karst::collect
