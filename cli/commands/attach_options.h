// SPDX-License-Identifier: MIT
// The command line of `karst attach`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "cli/commands/every_call.h"
#include "cli/input/noting.h"
#include "cli/input/states.h"
#include "cli/input/system.h"
#include "collect/launch/attach.h"

namespace karst::cli {

struct AttachOptions {
  std::string target;
  std::vector<std::string> triggers;
  std::vector<std::string> functions;
  std::vector<std::string> not_functions;
  bool multi = false;
  std::string last = "200ms";
  std::string output;
  bool no_source = false;
  StateArguments states;
  std::string usage = "on";
  // Of a program without sleds.
  bool no_patch = false;
  std::vector<std::string> libraries;
  std::vector<std::string> probes;
  std::string min_instructions;
  std::optional<std::string> budget;  // none: as it was before, or kPlainBudget
  std::optional<std::string> memory;
  std::string fibers;  // empty: not asked for
  std::optional<std::uint32_t> sample;
  EveryCallOptions all;
  bool view = false;
  std::string frames;  // IN:OUT, descriptors: the page is on another machine (view_far.h)
  std::string length;  // empty: until Ctrl-C
  ValueArguments values;
  SystemArguments system;
};

/// Declares them, and says what the command is for.
void add_attach_options(Command& command, AttachOptions& options);
/// Error: what does not go together. `given`: the command, read.
Status check_attach_options(const AttachOptions& options, const Command& given);

/// The descriptors of --frames. None: they are no two open ones.
std::optional<std::pair<int, int>> frames_of(const AttachOptions& options);
/// Some functions are asked for, or not wanted.
bool chooses(const AttachOptions& options);
/// None: one of the options is wrong, which was said.
std::optional<collect::PlainAttach> plain_attach(const AttachOptions& options);

}  // namespace karst::cli
