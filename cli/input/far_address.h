// SPDX-License-Identifier: MIT
// What is to be looked at on another machine: ssh://[USER@]HOST[:PORT]/FILE|PID|NAME.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace karst::cli {

struct FarAddress {
  std::string destination;  ///< what ssh is given: HOST or USER@HOST
  std::string port;         ///< empty: what ssh takes by itself
  std::string target;       ///< of the file system there without its first slash, or a process
};

bool is_far_address(std::string_view text);
/// Requires is_far_address(). Error: it is none that ssh may be given, or without a target.
Result<FarAddress> parse_far_address(std::string_view text);

}  // namespace karst::cli
