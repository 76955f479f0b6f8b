// SPDX-License-Identifier: MIT
#include "cli/commands/diff_text.h"

#include <fmt/format.h>

#include "base/output.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "words/findings.h"

namespace karst::cli {

void print_findings(const std::vector<analysis::Finding>& found, const std::array<double, 2>& all_ns, bool all,
                    Screen& screen) {
  screen.output().append(words::words_of_all(all_ns) + "\n");
  const words::Told told = words::worth_telling(found, all_ns, all);
  for (const analysis::Finding* f : told.findings)
    screen.output().append(wrap(words::words_of(*f), screen.width(), 2) + "\n");
  if (told.left_out != 0)
    screen.output().append(fmt::format("{} not shown; --all shows all\n", plural(told.left_out, "lesser finding")));
}

}  // namespace karst::cli
