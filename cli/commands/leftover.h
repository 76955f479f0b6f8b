// SPDX-License-Identifier: MIT
// What a program left, a core or its arena's file, becomes a trace: the part of karst resolve that is not about traces.
#pragma once
#include <string>

#include "symbols/resolve.h"

namespace karst::cli {

struct LeftoverOptions {
  std::string file;
  std::string output;   ///< empty: a name that is free
  std::string program;  ///< where the executable is now; empty: where it was
  bool no_source = false;
  symbols::ResolveOptions resolve;
};

/// It begins as a trace does, so nothing that a program left.
bool is_trace(const std::string& file);

/// Returns the exit status.
int recover(LeftoverOptions options);

}  // namespace karst::cli
