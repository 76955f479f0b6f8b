// SPDX-License-Identifier: MIT
#include "choice/function_choice.h"

namespace karst::choice {

Result<FunctionChoice> FunctionChoice::make(FunctionFilter filter, ListChoice lists, bool use_carried) {
  auto no_trace = GlobSet::compile(lists.no_trace);
  if (!no_trace) return no_trace.error();
  auto only = GlobSet::compile(lists.only);
  if (!only) return only.error();
  FunctionChoice choice;
  choice.filter_ = std::move(filter);
  choice.lists_ = std::move(lists);
  choice.no_trace_ = std::move(*no_trace);
  choice.only_ = std::move(*only);
  choice.use_carried_ = use_carried;
  return choice;
}

void FunctionChoice::keep(const std::vector<std::string>& patterns) {
  kept_ = FunctionFilter(patterns);
  has_kept_ = !patterns.empty();
}

}  // namespace karst::choice
