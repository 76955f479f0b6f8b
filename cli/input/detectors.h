// SPDX-License-Identifier: MIT
// The detectors of `karst check`: those that come with Karst, and the user's.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "sql/detector.h"

namespace karst::cli {

struct FoundDetectors {
  std::vector<sql::Detector> detectors;  ///< by name
  std::vector<std::string> failures;     ///< files of SQL that cannot be used, each with why
  std::vector<std::string> notices;      ///< what else is not read, with why
};

/// Those of Karst, of $XDG_CONFIG_HOME/karst/detectors (else ~/.config/...) and of `directories`, in this order: of two
/// of one name the later one stands. Error: one of `directories` is not read, or Karst's own are missing.
Result<FoundDetectors> find_detectors(const std::vector<std::string>& directories);

}  // namespace karst::cli
