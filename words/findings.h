// SPDX-License-Identifier: MIT
// Findings in words, for karst diff and the page: one finding is one sentence, who calls what how often, or what takes
// how long, and how sure that is.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "analysis/diff_findings.h"

namespace karst::words {

/// `handle(int) calls lookup(int) 3,000 times, before 1,000: +582 us (exact)`
std::string words_of(const analysis::Finding& finding);

/// "exact", "certain, chance 0.1%", "may be chance".
std::string sureness(const analysis::Finding& finding);

/// `17 ms in all, before 5 ms`. `all_ns`: self time of all functions of a run, by side.
std::string words_of_all(const std::array<double, 2>& all_ns);

/// Which findings are worth a line, in their order: the certain ones, and some of what may be chance.
struct Told {
  std::vector<const analysis::Finding*> findings;
  std::size_t left_out = 0;  ///< certain ones beyond these
};
Told worth_telling(const std::vector<analysis::Finding>& found, const std::array<double, 2>& all_ns, bool all);

}  // namespace karst::words
