// SPDX-License-Identifier: MIT
// A detector: SQL that looks for one kind of trouble in a trace, with what it is called and what it needs.
//
//   -- name: slow-writes
//   -- sentence: Writes to files that took long.
//   -- needs: files
//   SELECT ... AS title, ... AS sentence, ...
//
// The lines of `--` that a file begins with are its header. Lines with other words than these are comments. What the
// last statement answers are findings, a row each, with the columns of finding_columns() in any order.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/check.h"
#include "base/result.h"
#include "sql/database.h"

namespace karst::sql {

/// What a detector may need of a trace.
struct Need {
  const char* word;    ///< in the header
  const char* sql;     ///< that answers a row where the trace has it
  const char* lacks;   ///< "no thread states"
  const char* remedy;  ///< how to get it
};
std::span<const Need> all_needs();

struct Detector {
  std::string name;
  std::string sentence;
  std::vector<std::string> needs;  ///< words of all_needs()
  std::string file;
  std::string sql;
};

/// More findings than anybody reads are a mistake.
inline constexpr std::size_t kMostFindings = 1000;

/// Error: what the header lacks, with the file's name.
Result<Detector> parse_detector(std::string sql, std::string file);

/// What the columns of an answer must be called.
std::span<const char* const> finding_columns();

struct Checked {
  answers::CheckOutcome outcome;
  std::vector<answers::CheckFinding> findings;
};
/// `database` is of the one trace, which is called `trace`, and serves no other detector: SQL may change what it has.
Checked check(const Detector& detector, Database& database, const std::string& trace);

}  // namespace karst::sql
