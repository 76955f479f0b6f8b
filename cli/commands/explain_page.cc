// SPDX-License-Identifier: MIT
#include "cli/commands/explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/text/html.h"

namespace karst::cli {
namespace {

constexpr double kBar = 160;  // px for all of the excess
constexpr const char* kStyle = R"(
p, table { margin: 0 0 .8rem; }
table { border-collapse: collapse; }
th, td { padding: .15rem .6rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: right; white-space: nowrap; }
tr + tr { border-top: 1px solid #8884; }
rect { fill: #d9502e; }
rect.less { fill: #3b7dd8; }
small { display: block; opacity: .75; }
)";

}  // namespace

void print_explain_page(const ExplainAnswer& answer, const std::string& trace, Output& output) {
  begin_page(answer.head, kStyle, nullptr, output);
  const auto paragraph = [&](const std::string& text) {
    if (!text.empty()) output.append("<p>" + markup(text) + "</p>\n");
  };
  paragraph(answer.usual);
  for (const std::string& value : answer.values) paragraph(value);
  if (!answer.rows.empty()) {
    output.append(
        "<table><thead><tr><th>share</th><th>excess</th><th></th><th>where and what</th></tr></thead><tbody>\n");
    for (const ExplainAnswer::Row& row : answer.rows) {
      const double width = kBar * std::min(1.0, std::abs(row.percent) / 100);
      output.append(
          fmt::format("<tr><td>{:.1f}%</td><td>{}</td><td><svg width=\"{}\" height=\"12\" role=\"img\" "
                      "aria-label=\"{:.1f}%\"><rect{} width=\"{:.1f}\" height=\"12\"/></svg></td><td>{}",
                      row.percent, markup(row.excess), kBar, row.percent, row.percent < 0 ? " class=\"less\"" : "",
                      width, markup(row.text)));
      for (const std::string& more : row.more) output.append("<small>" + markup(more) + "</small>");
      output.append("</td></tr>\n");
    }
    output.append("</tbody></table>\n");
  }
  paragraph(answer.call + ", of " + trace);
  paragraph(answer.cost);
  end_page(nullptr, output);
}

}  // namespace karst::cli
