// SPDX-License-Identifier: MIT
// What a program said once, of itself, a thread, a plot or a zone: names whose descriptions say what they mean
// (kAppInfo and its like, format/note.h). The bytes are the program's: what is not as it should be is none.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reader/model.h"

namespace karst::analysis {

/// The colour of a zone, a message or of text as `#ff8000`: 0xff8000.
std::optional<std::uint32_t> color_of(std::string_view text);
inline std::optional<std::uint32_t> color_of(const reader::Function& name) {
  return name.note ? color_of(name.values) : std::nullopt;
}
std::string color_text(std::uint32_t color);

/// Lines about the program as a whole, each once, in the order in which they were first said. They are `process`'s.
std::vector<std::string_view> app_info(const reader::Process& process);

/// How a plot is to be drawn.
struct PlotLook {
  bool line = false;  ///< from value to value; else steps
  std::optional<std::uint32_t> color;
  std::string unit;
};
/// By the plot's name; what was said last counts.
std::map<std::string_view, PlotLook> plot_looks(const reader::Process& process);

/// By reader::Thread::index: the group's name. What was said last counts.
std::map<std::uint32_t, std::string_view> thread_groups(const reader::Process& process);

/// How many functions of a module the trace knows, and of how many it does not tell all.
struct FunctionCounts {
  std::uint64_t all = 0, unnamed = 0, without_line = 0;
};
FunctionCounts functions_of(const reader::Process& process, const reader::Module& module);

/// The wall-clock time of `ticks`, ns; 0: the trace does not tell.
std::uint64_t realtime_ns(const reader::Clock& clock, std::uint64_t ticks);

}  // namespace karst::analysis
