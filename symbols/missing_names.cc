// SPDX-License-Identifier: MIT
#include "symbols/missing_names.h"

#include <algorithm>
#include <utility>

namespace karst::symbols {

void MissingNames::add(std::vector<reader::Problem> problems) {
  for (reader::Problem& problem : problems) {
    const auto same =
        std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one.message == problem.message; });
    if (same == all_.end())
      all_.push_back(std::move(problem));
    else
      same->count += problem.count;
  }
}

std::vector<reader::Problem> MissingNames::folded(const char* where) const {
  if (all_.empty()) return {};
  reader::Problem most =
      *std::max_element(all_.begin(), all_.end(), [](const auto& a, const auto& b) { return a.count < b.count; });
  if (all_.size() > 1)
    most.message += ". There are " + std::to_string(all_.size() - 1) + " more like this: " + where + " the modules";
  return {std::move(most)};
}

}  // namespace karst::symbols
