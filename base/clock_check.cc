// SPDX-License-Identifier: MIT
#include "base/clock_check.h"

#include <fstream>

#include "arch/cpu.h"
#include "format/clock_source.h"

namespace karst {

std::string why_counter_is_unsure() {
  std::string source;
  std::ifstream in(format::kClockSourceFile);
  std::getline(in, source);
  if (format::counter_is_trusted(source.c_str(), arch::counter_is_invariant())) return {};
  return source.empty() ? "the kernel's clock is not known, and the processor does not call its counter constant"
                        : "the kernel's clock is " + source;
}

}  // namespace karst
