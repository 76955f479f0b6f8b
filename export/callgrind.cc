// SPDX-License-Identifier: MIT
// Callgrind's profile format, which KCachegrind and callgrind_annotate read ("Callgrind Format Specification", Valgrind
// manual, version 1): each function with its own time, and below it each function that it called with the calls' number
// and time. Sums are those of `karst report`: the tracer's cost is taken out.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/report.h"
#include "base/text.h"
#include "columns/edges.h"
#include "export/export.h"

namespace karst::exporting {
namespace {

/// Texts that stand once, with a number, and by that number after it: "(3) name", "(3)".
class Numbered {
 public:
  std::string of(std::string_view text) {
    const auto [at, fresh] = numbers_.try_emplace(std::string(text), numbers_.size() + 1);
    return fresh ? fmt::format("({}) {}", at->second, printable(text)) : fmt::format("({})", at->second);
  }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
};

class CallgrindWriter {
 public:
  CallgrindWriter(const reader::Trace& trace, const Options& options, Output& output)
      : trace_(trace), options_(options), output_(output), builder_(trace) {}

  void write() {
    for (const reader::Thread* thread : options_.threads) add(*thread);
    edges_.settle();
    report_ = builder_.finish();
    analysis::sort_by_total(report_);
    output_.append("# callgrind format\nversion: 1\ncreator: karst\npositions: line\nevents: ns\n");
    output_.append(fmt::format("summary: {}\n", report_.self_ns));
    std::unordered_map<std::uint32_t, std::vector<const columns::Edge*>> callees;
    for (const columns::Edge& edge : edges_.edges()) callees[edge.caller].push_back(&edge);
    for (const analysis::FunctionReport& of : report_.functions) {
      if (output_.failed()) return;
      write_function(of, callees[of.number]);
    }
  }

 private:
  void add(const reader::Thread& thread) {
    const reader::Calls calls = timed_calls_of(trace_, thread, options_);
    builder_.add(thread, calls);
    edges_.add(builder_.parts().latest());
    if (options_.calls_done != nullptr) options_.calls_done->fetch_add(calls.size(), std::memory_order_relaxed);
  }

  /// Lines that say which function is meant, by keys for it and for what it calls.
  std::string position(const analysis::FunctionReport& of, const char* object, const char* file, const char* function) {
    return fmt::format("{}={}\n{}={}\n{}={}\n", object, objects_.of(of.module.empty() ? "???" : of.module), file,
                       files_.of(of.file.empty() ? "???" : of.file), function, functions_.of(of.name));
  }

  void write_function(const analysis::FunctionReport& of, const std::vector<const columns::Edge*>& callees) {
    output_.append("\n" + position(of, "ob", "fl", "fn") + fmt::format("{} {}\n", of.line, of.self_ns));
    for (const columns::Edge* edge : callees) {
      const analysis::FunctionReport& callee = called(edge->callee);
      const auto total = static_cast<std::int64_t>(edge->total) < 0 ? 0 : trace_.clock().to_ns(edge->total);
      output_.append(position(callee, "cob", "cfi", "cfn") +
                     fmt::format("calls={} {}\n{} {}\n", edge->calls, callee.line, of.line, total));
    }
  }

  const analysis::FunctionReport& called(std::uint32_t number) {
    if (by_number_.empty())
      for (const analysis::FunctionReport& of : report_.functions) by_number_[of.number] = &of;
    return *by_number_.at(number);
  }

  const reader::Trace& trace_;
  const Options& options_;
  Output& output_;
  analysis::ReportBuilder builder_;
  columns::EdgeSums edges_;
  analysis::Report report_;
  std::unordered_map<std::uint32_t, const analysis::FunctionReport*> by_number_;
  Numbered objects_, files_, functions_;
};

}  // namespace

void export_callgrind(const reader::Trace& trace, const Options& options, Output& output) {
  CallgrindWriter(trace, options, output).write();
}

}  // namespace karst::exporting
