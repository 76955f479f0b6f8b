// SPDX-License-Identifier: MIT
// speedscope's own format: its "file format schema", evented profiles, one for each thread. Frames stand behind the
// profiles, as only those that occur are written.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/tree.h"
#include "base/json.h"
#include "export/export.h"

namespace karst::exporting {
namespace {

class SpeedscopeWriter {
 public:
  SpeedscopeWriter(const reader::Trace& trace, const Options& options, Output& output)
      : trace_(trace), options_(options), output_(output), origin_(analysis::first_ticks(trace)) {}

  void write() {
    json_.open('{').field("$schema", "https://www.speedscope.app/file-format-schema.json");
    json_.field("name", trace_.name()).field("exporter", "karst").key("profiles").open('[');
    for (const reader::Thread* thread : options_.threads) {
      if (output_.failed()) return;
      write_thread(*thread);
    }
    json_.line().close(']').key("shared").open('{').key("frames").open('[');
    for (const reader::Function* function : frames_) {
      json_.line().open('{').field("name", function->name);
      if (!function->file.empty()) json_.field("file", function->file).field("line", function->line);
      json_.close('}').flush(output_);
    }
    json_.line().close(']').close('}').close('}').flush(output_);
    output_.append("\n");
  }

 private:
  std::uint64_t ns(std::uint64_t ticks) const { return ticks > origin_ ? trace_.clock().to_ns(ticks - origin_) : 0; }

  /// A function that several processes have is one frame for each.
  std::size_t frame_of(const reader::Process& process, std::uint32_t id) {
    const std::uint64_t key = std::uint64_t{process.index} << 32U | id;
    const auto [at, fresh] = frame_numbers_.try_emplace(key, frames_.size());
    if (fresh) frames_.push_back(&trace_.function(process, id));
    return at->second;
  }

  void write_event(char type, std::size_t frame, std::uint64_t at) {
    event_.clear();
    fmt::format_to(std::back_inserter(event_), FMT_COMPILE(R"({{"type":"{}","frame":{},"at":{}}})"), type, frame, at);
    json_.line().raw(event_).flush(output_);
  }

  void write_thread(const reader::Thread& thread) {
    const reader::Process& process = trace_.processes()[thread.process];
    const reader::Calls calls = calls_of(trace_, thread, options_);
    if (calls.size() == 0) return;
    json_.line().open('{').field("type", "evented").field("name", fmt::format("{} {}", thread.name, thread.tid));
    json_.field("unit", "nanoseconds").field("startValue", 0);
    json_.field("endValue", ns(std::max(calls.last_ticks, analysis::last_ticks(trace_)))).key("events").open('[');
    std::uint64_t done = 0, latest = 0;
    analysis::TreeOptions tree;
    tree.roots = options_.functions;
    const auto event = [&](char type, std::uint32_t row, std::uint64_t ticks) {
      latest = std::max(latest, ns(ticks));
      write_event(type, frame_of(process, calls.function[row]), latest);
    };
    analysis::walk(
        calls, thread.process, tree,
        [&](std::uint32_t row, std::uint32_t) {
          event('O', row, calls.begin[row]);
          if ((++done & 0xfffU) == 0) add_progress(0x1000);
          return !output_.failed();
        },
        [&](std::uint32_t row, std::uint32_t) { event('C', row, calls.begin[row] + calls.duration[row]); });
    json_.line().close(']').close('}').flush(output_);
    add_progress(done & 0xfffU);
  }

  void add_progress(std::uint64_t calls) {
    if (options_.calls_done != nullptr) options_.calls_done->fetch_add(calls, std::memory_order_relaxed);
  }

  const reader::Trace& trace_;
  const Options& options_;
  Output& output_;
  const std::uint64_t origin_;  // ticks
  Json json_;
  std::string event_;
  std::unordered_map<std::uint64_t, std::size_t> frame_numbers_;  // by process and function
  std::vector<const reader::Function*> frames_;
};

}  // namespace

void export_speedscope(const reader::Trace& trace, const Options& options, Output& output) {
  SpeedscopeWriter(trace, options, output).write();
}

}  // namespace karst::exporting
