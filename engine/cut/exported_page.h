// SPDX-License-Identifier: MIT
// A trace as one file that opens in any browser, without Karst, a server or a network: the viewer's page with the data
// inside (docs/viewer-protocol.md, "Exported pages"). For bug reports.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/output.h"
#include "base/result.h"
#include "engine/index/index.h"

namespace karst::engine {

/// Calls that a page may hold one by one: at most about 12 bytes of file and 60 of the browser's memory each.
inline constexpr std::uint64_t kMaxHtmlCalls = 2'000'000;
/// Slices of the picture in an aggregated page.
inline constexpr std::uint64_t kMaxHtmlSlices = 400'000;
/// Source text in a page.
inline constexpr std::uint64_t kMaxHtmlSource = std::uint64_t{32} << 20U;

struct HtmlOptions {
  std::vector<std::uint32_t> threads;  ///< which, by number in the index
  std::optional<double> begin;         ///< ns since the trace's start
  std::optional<double> end;
  bool aggregated = false;  ///< sums and one picture instead of calls
  std::string version;
};

/// Writes the page. `page` is export.html as the viewer's build made it. Error: the range has more than kMaxHtmlCalls
/// (the message offers the aggregated form), or the page is not one that data can be put into.
Status export_html(const TraceIndex& index, std::string_view page, const HtmlOptions& options, Output& output);

/// The page without a trace, which opens files by itself. Error: as above.
Status export_viewer(std::string_view page, Output& output);

}  // namespace karst::engine
