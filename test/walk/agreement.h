// Whether all that visit a thread's events (walk/walker.h) say the same of them. The reader is the reference.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "reader/trace.h"

namespace karst::test {

struct Agreement {
  std::vector<std::string> wrong;     ///< what differs, in words
  std::size_t threads = 0;            ///< that were compared: not those of processes whose functions were switched
  std::size_t threads_of_budget = 0;  ///< of them, with what the budget sees: it holds a bounded depth alone
};

Agreement agreement_on(const reader::Trace& trace);

}  // namespace karst::test
