// SPDX-License-Identifier: MIT
// Which process a command means: a number, a name, or on a terminal a choice.
#pragma once
#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "collect/launch/attach.h"

namespace karst::cli {

/// The positional PID; `text` becomes what was given, empty for nothing.
void add_target(Command command, std::string& text);

/// Finds and maps the process. An Error names the candidates where it is not plain which one is meant.
Result<collect::Attached> find_target(const std::string& text);

/// Whether find_process() has one, or several, for it.
bool names_process(const std::string& text);

/// Any process, traced or not.
Result<HeldProcess> find_process(const std::string& text);

/// As find_target(), of any process: one without libkarst gets it (collect::attach_or_load()).
Result<collect::Attached> find_or_load_target(const HeldProcess& process, const collect::PlainAttach& plain,
                                              collect::PlainPrograms& programs, collect::Brought& brought);

/// "on", "off", "partly" or "budget", and why it cannot be switched.
std::string state_text(const collect::Attached& target);

}  // namespace karst::cli
