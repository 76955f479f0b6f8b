// SPDX-License-Identifier: MIT
// What was asked of a wrapper: its own options (--karst-...), taken out of the command line, and what is left of that
// for the compiler.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace karst::toolchain {

/// Of the wrappers' own options.
inline constexpr std::string_view kOwnPrefix = "--karst-";

enum class Method { kSled, kFinstrument, kFinstrumentAfterInlining };

struct Request {
  Method method = Method::kSled;
  bool with_runtime = false;    ///< --karst-link
  std::string threshold = "1";  ///< clang's: functions of fewer IR instructions and no loop have no sleds
  bool threshold_given = false;
  std::vector<std::string> lists;  ///< entries for the note of format/filter_list.h
  std::vector<std::string> rest;   ///< the compiler's arguments
};

/// Takes the wrapper's options out of `arguments` (argv without its first word), and out of response files (@FILE).
/// List files are read here. The error says which option, or which file and line, is wrong.
Result<Request> parse_request(const std::vector<std::string>& arguments);

}  // namespace karst::toolchain
