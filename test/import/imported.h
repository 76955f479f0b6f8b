// A foreign text as a trace, imported and read again.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "import/import.h"
#include "reader/trace.h"

namespace karst::importing {

class Imported {
 public:
  Imported(Importer importer, std::string_view text) {
    auto foreign = importer(text);
    if (!foreign) {
      error = foreign.error().message;
      return;
    }
    auto writer = writing::TraceWriter::to_memory(bytes_);
    const auto written = write_trace(std::move(*foreign), writer);
    if (!written) {
      error = written.error().message;
      return;
    }
    summary = *written;
    if (!writer.finish()) throw std::runtime_error("writing to memory failed");
    auto opened = reader::Trace::open_memory(bytes_, "imported");
    if (!opened) throw std::runtime_error(opened.error().message);
    trace_.emplace(std::move(*opened));
    EXPECT_TRUE(trace_->problems().empty());
  }

  const reader::Trace& trace() const { return *trace_; }

  /// Each thread as a tree: `10/11: a(b c) d`, with durations in ns; `~` for an open call.
  std::vector<std::string> trees() const {
    std::vector<std::string> all;
    if (!trace_) return all;
    for (const reader::Process& process : trace_->processes())
      for (const reader::Thread& thread : process.threads) all.push_back(tree(process, thread));
    return all;
  }

  std::string error;
  Summary summary;

 private:
  std::string tree(const reader::Process& process, const reader::Thread& thread) const {
    const reader::Calls calls = reader::rebuild_calls(*trace_, thread);
    std::string text = std::to_string(process.pid) + "/" + std::to_string(thread.tid) + ":";
    std::uint32_t depth = 0;
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      for (; depth > calls.depth[row]; --depth) text += ')';
      if (depth < calls.depth[row])
        text += '(';
      else
        text += ' ';
      depth = calls.depth[row];
      text += trace_->function(process, calls.function[row]).name;
      if ((calls.marks[row] & reader::kCallOpenEnd) != 0)
        text += '~';
      else
        text += std::to_string(calls.duration[row]);
    }
    return text + std::string(depth, ')');
  }

  std::vector<std::byte> bytes_;
  std::optional<reader::Trace> trace_;
};

/// Names, files, lines, begins since the first one, and durations, in nanoseconds.
using Row = std::tuple<std::string, std::string, std::uint32_t, std::uint64_t, std::uint64_t>;
/// By process and thread.
using Rows = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Row>>;

inline Rows rows_of(const reader::Trace& trace) {
  Rows rows;
  std::uint64_t first = UINT64_MAX;
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      if (calls.size() != 0) first = std::min(first, calls.begin[0]);
    }
  for (const reader::Process& process : trace.processes())
    for (const reader::Thread& thread : process.threads) {
      const reader::Calls calls = reader::rebuild_calls(trace, thread);
      for (std::uint32_t row = 0; row < calls.size(); ++row) {
        const reader::Function& f = trace.function(process, calls.function[row]);
        const std::uint64_t begin = trace.clock().to_ns(calls.begin[row] - first);
        const std::uint64_t end = trace.clock().to_ns(calls.begin[row] + calls.duration[row] - first);
        rows[{process.pid, thread.tid}].emplace_back(valid_utf8(f.name), f.file, f.file.empty() ? 0 : f.line, begin,
                                                     end - begin);
      }
    }
  return rows;
}

}  // namespace karst::importing
