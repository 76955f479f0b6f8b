// SPDX-License-Identifier: MIT
// pprof's profile.proto, packed by gzip: calls added up by their stack, each stack with its number of calls and their
// own time. pprof adds up what a function called by itself. Sums are those of `karst report`: the tracer's cost is
// taken out. In memory are one thread's calls and the tree of stacks.
#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/parts.h"
#include "base/utf8.h"
#include "columns/flame.h"
#include "columns/settle.h"
#include "export/export.h"
#include "export/gzip.h"
#include "export/pprof_fields.h"

namespace karst::exporting {
namespace {

/// Of a deeper stack pprof gets both ends, with a frame in between that says so: a program that calls itself a million
/// times deep has a million stacks of up to a million frames.
constexpr std::size_t kMostFrames = 1024;

class PprofWriter {
 public:
  PprofWriter(const reader::Trace& trace, const Options& options, Output& output)
      : trace_(trace), options_(options), output_(output), packed_(output), parts_(trace) {}

  void write() {
    for (const reader::Thread* thread : options_.threads) add(*thread);
    tree_.settle();
    text("");
    write_value_type("calls", "count");
    write_value_type("time", "nanoseconds");
    write_samples();
    write_functions();
    write_span();
    for (const std::string& of : texts_) write(pprof::kStringTable, of);
    packed_.finish();
  }

 private:
  void add(const reader::Thread& thread) {
    const reader::Calls calls = timed_calls_of(trace_, thread, options_);
    tree_.add(parts_.of(thread, calls), columns::kNoFunction);
    if (options_.calls_done != nullptr) options_.calls_done->fetch_add(calls.size(), std::memory_order_relaxed);
  }

  /// Its place in the table of strings.
  std::int64_t text(std::string_view of) {
    const auto [at, fresh] = text_numbers_.try_emplace(valid_utf8(of), texts_.size());
    if (fresh) texts_.push_back(at->first);
    return static_cast<std::int64_t>(at->second);
  }

  /// A field of the profile.
  void write(pprof::Profile field, std::string_view bytes) {
    framed_.clear();
    protozero::pbf_writer(framed_).add_bytes(field, bytes.data(), bytes.size());
    packed_.append(framed_);
  }
  void write(pprof::Profile field, std::int64_t number) {
    framed_.clear();
    protozero::pbf_writer(framed_).add_int64(field, number);
    packed_.append(framed_);
  }

  void write_value_type(const char* name, const char* unit) {
    std::string body;
    protozero::pbf_writer type(body);
    type.add_int64(pprof::kValueName, text(name));
    type.add_int64(pprof::kValueUnit, text(unit));
    write(pprof::kSampleType, body);
  }

  /// One for each stack in which a call ended up.
  void write_samples() {
    const auto& nodes = tree_.nodes();
    std::string body;
    for (std::uint32_t node = 1; node < nodes.size() && !output_.failed(); ++node) {
      const columns::FlameNode::Side& of = nodes[node].side[0];
      const std::int64_t ns = own_ns(nodes[node].function, of.self);
      if (of.calls == 0 && ns == 0) continue;
      note_stack(node);
      body.clear();
      protozero::pbf_writer sample(body);
      sample.add_packed_uint64(pprof::kLocationIds, stack_.begin(), stack_.end());
      const std::int64_t values[] = {static_cast<std::int64_t>(of.calls), ns};
      sample.add_packed_int64(pprof::kValues, std::begin(values), std::end(values));
      write(pprof::kSample, body);
    }
  }

  /// What is rounded away of one stack is in the function's next one, so that they add up to the function's own time.
  std::int64_t own_ns(std::uint32_t function, std::uint64_t ticks) {
    std::uint64_t& passed = passed_[function];
    const std::uint64_t before = trace_.clock().to_ns(passed);
    passed += columns::at_least_0(ticks);
    return static_cast<std::int64_t>(trace_.clock().to_ns(passed) - before);
  }

  /// The innermost frame first.
  void note_stack(std::uint32_t node) {
    const auto& nodes = tree_.nodes();
    stack_.clear();
    for (; node != 0; node = nodes[node].parent) stack_.push_back(location_of(nodes[node].function));
    if (stack_.size() <= kMostFrames) return;
    constexpr std::size_t kInner = kMostFrames / 2, kOuter = kMostFrames - kInner - 1;
    stack_[kInner] = kLeftOut;
    std::move(stack_.end() - kOuter, stack_.end(), stack_.begin() + kInner + 1);
    stack_.resize(kMostFrames);
    left_out_ = true;
  }

  /// Functions and their places have the same ids. 0 is none's.
  static constexpr std::uint64_t kLeftOut = 1, kOthers = 2, kFirstFunction = 3;
  std::uint64_t location_of(std::uint32_t function) {
    if (function == columns::FlameTree::kOther) return kOthers;
    return kFirstFunction + function;
  }

  void write_functions() {
    const analysis::FunctionList& list = parts_.functions();
    for (std::size_t module = 0; module < list.modules().size(); ++module)
      write_mapping(module + 1, list.modules()[module]);
    if (left_out_) write_function(kLeftOut, 0, "(frames left out)", "", 0);
    if (tree_.truncated()) write_function(kOthers, 0, "(more stacks than can be told apart)", "", 0);
    std::uint64_t id = kFirstFunction;
    for (const analysis::FunctionInfo& of : list.functions()) {
      const std::string_view file = of.file < 0 ? std::string_view() : list.files()[static_cast<std::size_t>(of.file)];
      write_function(id, static_cast<std::uint64_t>(of.module + 1), of.name, file, of.line);
      ++id;
    }
  }

  /// That it has names keeps pprof from looking for them.
  void write_mapping(std::uint64_t id, const std::string& path) {
    std::string body;
    protozero::pbf_writer mapping(body);
    mapping.add_uint64(pprof::kMappingId, id);
    mapping.add_int64(pprof::kFilename, text(path));
    for (const auto has : {pprof::kHasFunctions, pprof::kHasFilenames, pprof::kHasLineNumbers})
      mapping.add_bool(has, true);
    write(pprof::kMapping, body);
  }

  void write_function(std::uint64_t id, std::uint64_t mapping, std::string_view name, std::string_view file,
                      std::uint32_t line) {
    std::string body;
    {
      protozero::pbf_writer function(body);
      function.add_uint64(pprof::kFunctionId, id);
      function.add_int64(pprof::kFunctionName, text(name));
      function.add_int64(pprof::kSystemName, text(name));
      if (!file.empty()) function.add_int64(pprof::kFunctionFile, text(file));
      if (line != 0) function.add_int64(pprof::kStartLine, line);
    }
    write(pprof::kFunction, body);
    body.clear();
    {
      protozero::pbf_writer location(body);
      location.add_uint64(pprof::kLocationId, id);
      if (mapping != 0) location.add_uint64(pprof::kLocationMapping, mapping);
      protozero::pbf_writer of(location, pprof::kLocationLine);
      of.add_uint64(pprof::kLineFunction, id);
      if (line != 0) of.add_int64(pprof::kLineNumber, line);
    }
    write(pprof::kLocation, body);
  }

  void write_span() {
    const std::uint64_t first = analysis::first_ticks(trace_), last = analysis::last_ticks(trace_);
    if (const auto wall = wall_ns(trace_, first)) write(pprof::kTimeNanos, static_cast<std::int64_t>(*wall));
    if (last > first) write(pprof::kDurationNanos, static_cast<std::int64_t>(trace_.clock().to_ns(last - first)));
    write(pprof::kComment, text(fmt::format("karst export of {}", trace_.name())));
    write(pprof::kDefaultSampleType, text("time"));
  }

  const reader::Trace& trace_;
  const Options& options_;
  Output& output_;
  GzipWriter packed_;
  analysis::Parts parts_;
  columns::FlameTree tree_;
  std::unordered_map<std::uint32_t, std::uint64_t> passed_;  // by function: ticks of the stacks so far
  std::vector<std::uint64_t> stack_;                         // ids of locations
  bool left_out_ = false;
  std::unordered_map<std::string, std::size_t> text_numbers_;
  std::vector<std::string> texts_;
  std::string framed_;
};

}  // namespace

void export_pprof(const reader::Trace& trace, const Options& options, Output& output) {
  PprofWriter(trace, options, output).write();
}

}  // namespace karst::exporting
