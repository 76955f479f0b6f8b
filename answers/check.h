// SPDX-License-Identifier: MIT
// The relations of `karst check`: what detectors found in a trace, what became of each detector, and which there are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answers/relation.h"

namespace karst::answers {

/// What a detector found.
struct CheckFinding {
  std::string trace;
  std::string detector;
  std::string title;
  std::string sentence;
  std::uint64_t begin_ns = 0;  ///< since the trace's first event
  std::uint64_t duration_ns = 0;
  std::optional<std::uint64_t> tid;
  std::string thread;  ///< its name; empty: not known
  std::string call;    ///< as `karst explain --call` takes it; empty: it is of no one call
  std::uint64_t amount = 0;
  std::string unit;  ///< of the amount: ns, bytes, or what is counted
  std::uint64_t total_ns = 0;
  double sure = 0;  ///< 0 to 1
};

/// What became of a detector in a trace.
struct CheckOutcome {
  std::string trace;
  std::string detector;
  const char* outcome;  ///< found, nothing, not looked for, failed
  std::string why;      ///< of the last two
  std::uint64_t findings = 0;
};

/// A detector that there is.
struct DetectorRow {
  const std::string& name;
  const std::string& sentence;
  const std::vector<std::string>& needs;
  const std::string& file;
};

/// "200 calls", "12.35 ms", "1.5 MiB".
std::string amount_text(std::uint64_t amount, const std::string& unit);

/// Rows are CheckFinding.
const Relation& check_findings();
/// Rows are CheckOutcome.
const Relation& check_outcomes();
/// Rows are DetectorRow.
const Relation& detectors();

}  // namespace karst::answers
