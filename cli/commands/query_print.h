// SPDX-License-Identifier: MIT
// What SQL answers, for people and programs.
#pragma once
#include <cstddef>
#include <string>

#include "base/result.h"
#include "cli/input/database.h"
#include "cli/text/terminal.h"
#include "sql/database.h"

namespace karst::cli {

struct PrintOptions {
  std::string format = "text";  ///< or csv, json
  std::size_t limit = 1000;     ///< rows of text; 0: all
  TextOptions text;
};

/// DuckDB's error with what to do about it.
Error explained(const Error& error);

/// Asks, and prints the answer, or on stderr why there is none; returns the exit status. `partial`: traces of which it
/// is said what they lack. `first`: a trace that must not have changed meanwhile.
int print_answer(sql::Database& database, const std::string& sql, const PrintOptions& options, const Inputs& partial,
                 const reader::Trace& first);

}  // namespace karst::cli
