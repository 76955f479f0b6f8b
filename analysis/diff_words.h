// Findings in words, for karst diff and the page: one finding is one sentence, who calls what how often, or what takes
// how long, and how sure that is.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "analysis/diff_findings.h"
#include "base/json.h"

namespace karst::analysis {

/// `handle(int) calls lookup(int) 3,000 times, before 1,000: +582 us (exact)`
std::string words_of(const Finding& finding);

/// `17 ms in all, before 5 ms`. `all_ns`: self time of all functions of a run, by side.
std::string words_of_all(const std::array<double, 2>& all_ns);

/// Which findings are worth a line, in their order: the certain ones, and some of what may be chance.
struct Told {
  std::vector<const Finding*> findings;
  std::size_t left_out = 0;  ///< certain ones beyond these
};
Told worth_telling(const std::vector<Finding>& found, const std::array<double, 2>& all_ns, bool all);

/// "findings":[...] with all of them.
void add_findings(const std::vector<Finding>& found, Json& json);

}  // namespace karst::analysis
