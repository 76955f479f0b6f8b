// SPDX-License-Identifier: MIT
// A page here, its data on another machine: both sides of `karst view ssh://…`.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "cli/input/far_address.h"
#include "engine/remote/remote_source.h"

namespace karst::cli {

/// Connects by the user's own ssh. `karst`: where it is there; empty: ssh's shell finds it.
std::variant<std::unique_ptr<engine::Source>, engine::LinkLoss> far_source(const FarAddress& address,
                                                                           const std::string& karst, bool keep);

/// The other side, started by ssh there: answers by standard input and output. Of a process, `karst attach` takes the
/// place of this one. Returns the exit status.
int answer_far_page();
/// The same of `file`, when both have found each other already.
int answer_far_page(const std::string& file);

}  // namespace karst::cli
