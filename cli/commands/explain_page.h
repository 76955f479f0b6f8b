// SPDX-License-Identifier: MIT
// What karst explain says of a call, ready to be printed: as text, and as a page of one file.
#pragma once
#include <string>
#include <vector>

#include "base/output.h"

namespace karst::cli {

struct ExplainAnswer {
  struct Row {
    double percent = 0;               ///< of the excess, as it is printed
    std::string excess, text;         ///< its time; where and what
    std::vector<std::string> more{};  ///< what others did meanwhile; values that are not usual
  };
  std::string head;
  std::string usual;                  ///< what it was compared with; empty when nothing stands out
  std::vector<std::string> values{};  ///< of the call that are not usual; the lock that it waited for
  std::vector<Row> rows;              ///< add up to 100%; none when nothing stands out
  std::string call;                   ///< which call it is
  std::string cost;                   ///< what the times are without; empty: not known
};

void print_explain_page(const ExplainAnswer& answer, const std::string& trace, Output& output);

}  // namespace karst::cli
