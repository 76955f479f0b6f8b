// SPDX-License-Identifier: MIT
// What is asked of calls, functions and threads.
#include <algorithm>
#include <filesystem>
#include <limits>

#include "analysis/tracing_cost.h"
#include "choice/function_filter.h"
#include "columns/flame.h"
#include "columns/table.h"
#include "engine/api/answers.h"
#include "engine/api/api.h"
#include "engine/api/call_answers.h"
#include "engine/api/calls.h"
#include "engine/api/compare.h"
#include "engine/api/explain.h"
#include "engine/api/outliers.h"
#include "engine/api/question.h"
#include "engine/api/reply.h"
#include "engine/api/rows.h"
#include "engine/api/source.h"
#include "engine/api/states.h"
#include "engine/api/times.h"
#include "engine/protocol.h"
#include "format/note.h"

namespace karst::engine {
namespace {

constexpr std::size_t kFiltered = 4;

}  // namespace

std::shared_ptr<const FilteredLanes> Api::filtered(const TraceIndex& index, const std::vector<std::uint32_t>& functions,
                                                   Work* work) {
  {
    const std::lock_guard lock(mutex_);
    for (auto at = filtered_.begin(); at != filtered_.end(); ++at) {
      if (at->index != &index || at->functions != functions) continue;
      std::rotate(filtered_.begin(), at, at + 1);
      return filtered_.front().lanes;
    }
  }
  auto lanes = std::make_shared<const FilteredLanes>(filter_lanes(index, functions, work));
  if (is_stopped(work)) return lanes;
  const std::lock_guard lock(mutex_);
  filtered_.insert(filtered_.begin(), {&index, functions, lanes});
  if (filtered_.size() > kFiltered) filtered_.resize(kFiltered);
  return lanes;
}

Scope Api::sums_scope(const Question& question, Scope scope, const TraceIndex* beside) {
  if (question.is_raw() || !question.error().empty()) return scope;
  const auto cost = cost_beside(*scope.index, beside);
  return without_cost(std::move(scope), cost);
}

Reply Api::tiles(const Question& question) {
  const double begin = question.begin();
  const double end = question.end();
  const std::uint64_t width = question.whole("width", 0);
  if (!(end > begin)) question.complain("end must be greater than begin");
  if (width == 0 || width > kMaxWidth) question.complain("width must be 1 to " + std::to_string(kMaxWidth));
  const auto wanted = question.lanes();
  auto functions = question.numbers("function", question.index().functions().functions().size());
  if (!question.error().empty()) return {};
  std::shared_ptr<const FilteredLanes> lanes;
  if (functions) {
    std::sort(functions->begin(), functions->end());
    lanes = filtered(question.index(), *functions, question.work());
    if (is_stopped(question.work())) return {};
  }
  auto tiles = encode_tiles(question.index(), wanted, begin, end, static_cast<std::uint32_t>(width), lanes.get());
  if (!tiles) return error_reply(413, tiles.error().message);
  return binary_reply(std::move(*tiles));
}

Reply Api::minimap(const Question& question) {
  const std::uint64_t width = question.whole("width", 1024);
  if (width == 0 || width > kMaxWidth) question.complain("width must be 1 to " + std::to_string(kMaxWidth));
  const auto threads = question.threads();
  const auto what = question.time_of("of", "calls");
  if (!question.error().empty()) return {};
  return binary_reply(encode_minimap(question.index(), threads, static_cast<std::uint32_t>(width), what));
}

Reply Api::call(const Question& question) {
  const auto place = question.call();
  if (!place) {
    question.complain("which call? thread and index are missing");
    return {};
  }
  const TraceIndex& index = question.index();
  const NotedOfCall noted = values_.of_call(index, index.threads()[place->thread], place->row, question.work());
  Json json;
  write_call(json, index, *place, noted, question.is_raw());
  return json_reply(json);
}

Reply Api::values(const Question& question) {
  const TraceIndex& index = question.index();
  const std::uint64_t number = question.whole("thread", index.threads().size());
  if (number >= index.threads().size()) question.complain("there is no thread '" + question.text("thread") + "'");
  if (!question.error().empty()) return {};
  const ThreadIndex& thread = index.threads()[number];
  const auto rows = question.numbers("index", thread.calls.size());
  if (!rows) question.complain("which calls? index is missing");
  if (rows && rows->size() > kMostValues)
    question.complain("index names at most " + std::to_string(kMostValues) + " calls");
  if (!question.error().empty()) return {};
  Json json;
  values_.write_calls(json, index, thread, *rows, question.work());
  return json_reply(json);
}

Reply Api::state(const Question& question) {
  const std::uint64_t number = question.whole("thread", 0);
  const std::uint64_t state = question.whole("index", 0);
  if (!question.error().empty()) return {};
  const auto& threads = question.index().threads();
  if (number >= threads.size() || threads[number].states == nullptr || state >= threads[number].states->size()) {
    return error_reply(404, "there is no state " + std::to_string(state) + " of thread " + std::to_string(number));
  }
  Json json;
  write_state(json, question.index(), threads[number], state);
  return json_reply(json);
}

Reply Api::occurrences(const Question& question) {
  const std::uint32_t function = question.function();
  const std::string order = question.has("order") ? question.text("order") : "time";
  const std::string direction = question.has("direction") ? question.text("direction") : "next";
  if (order != "time" && order != "duration") question.complain("order must be time or duration");
  if (direction != "next" && direction != "previous") question.complain("direction must be next or previous");
  const std::uint64_t limit = question.whole("limit", 1);
  if (limit > kMaxOccurrences) question.complain("limit may be " + std::to_string(kMaxOccurrences));
  const auto around = question.call();
  const double least = question.number("least", 0);
  const double most = question.number("most", std::numeric_limits<double>::max());
  if (!question.error().empty()) return {};
  // Not question.scope(): thread and index say where to start.
  const TraceIndex& index = question.index();
  // Who goes on in time asks of a few calls what they took, and not of all.
  const bool takes_all = order == "duration" || question.has("least") || question.has("most");
  Scope scope = question.scope(question.ticks());
  if (takes_all) scope = sums_scope(question, std::move(scope));
  if (!question.error().empty()) return {};
  expect(question.work(), scope.rows());
  Occurrences found = engine::occurrences(
      scope, function, order == "time" ? OccurrenceOrder::kTime : OccurrenceOrder::kDuration, direction == "previous",
      around, limit, {index.to_ticks(least) - 1e-3, index.to_ticks(most) + 1e-3});
  if (!takes_all && !question.is_raw())
    for (CallPlace& place : found.calls) {
      const ThreadIndex& of = index.threads()[place.thread];
      const reader::Process& process = index.trace().processes()[of.thread->process];
      place.took = place.duration - analysis::cost_of_call(of.calls, place.row, process.cost, of.noted_costs);
    }
  Json json;
  write_occurrences(json, index, function, found);
  return json_reply(json);
}

Reply Api::histogram(const Question& question) {
  const std::uint32_t function = question.function();
  const Scope scope = sums_scope(question, question.scope());
  if (!question.error().empty()) return {};
  const TraceIndex& index = question.index();
  const columns::Histogram of = columns::histogram_of(scope, function);
  Json json;
  write_histogram(json, index, function, of);
  return json_reply(json);
}

Reply Api::functions(const Question& question) {
  const Question second = question.second();
  if (!second.error().empty()) question.complain("the trace to compare with: " + second.error());
  const Scope scope = sums_scope(question, question.scope(), second.any() ? &second.index() : nullptr);
  if (!question.error().empty()) return {};
  const TraceIndex& index = question.index();
  const columns::Table table = columns::table_of(scope);
  Json json;
  json.open('{').field("begin", question.begin()).field("end", question.end());
  write_table(json, index, table);
  json.close('}');
  return json_reply(json);
}

Reply Api::flame(const Question& question) {
  const TraceIndex& index = question.index();
  const auto path = question.numbers("path", index.functions().functions().size());
  const double share = question.number("share", kFlameShare);
  if (share < 0 || share > 1) question.complain("share must lie between 0 and 1");
  const auto by = question.time_of("by", "wall");
  const std::uint32_t root_function = question.has("function") ? question.function() : kNoFunction;
  const Question second = question.second();
  const bool compares = second.any();
  Scope scope = question.scope();
  std::optional<Scope> other;
  std::uint32_t other_function = kNoFunction;
  if (compares) {
    other = second.scope();
    if (second.has("function")) other_function = second.function();
    if (!second.error().empty()) question.complain("the second set of calls: " + second.error());
  }
  if (!question.error().empty()) return {};
  scope = sums_scope(question, std::move(scope), compares ? &second.index() : nullptr);
  if (compares) other = sums_scope(question, std::move(*other), &index);

  columns::FlameTree tree = columns::flame(scope, root_function, by);
  std::vector<std::string> extra;
  if (compares) {
    const std::vector<std::uint32_t> number_of = common_names(index, *other->index, extra);
    tree.merge(columns::flame(*other, other_function, by), &number_of, true);
  }
  if (question.flag("inverted")) tree = tree.inverted(question.work());
  const std::uint32_t root = path ? tree.find(*path) : 0;
  if (root == columns::FlameTree::kRoot) return error_reply(404, "there is no such path");

  Json json;
  json.open('{');
  write_flame(json, tree, root, share, index.trace().clock(), compares ? &other->index->trace().clock() : nullptr);
  if (compares) json.list("extra_functions", extra, [](const std::string& name) { return std::string_view(name); });
  json.close('}');
  return json_reply(json);
}

Reply Api::outliers(const Question& question) {
  const std::uint64_t limit = question.whole("limit", 50);
  if (limit > kMaxOutliers) question.complain("limit may be " + std::to_string(kMaxOutliers));
  const TickRange range = question.ticks();
  const Scope scope = question.scope(range);
  if (!question.error().empty()) return {};
  Json json;
  write_outliers(json, scope, range, question.flag("each"), limit, question.is_raw());
  return json_reply(json);
}

Reply Api::explain(const Question& question) {
  const auto place = question.call();
  if (!place && question.error().empty()) question.complain("which call? thread and index are missing");
  if (!question.error().empty()) return {};
  const TraceIndex& index = question.index();
  if (!columns::is_complete(index.threads()[place->thread].calls.marks[place->row]))
    return error_reply(404, "the end or begin of this call is not known, so its duration is not");
  Json json;
  write_explanation(json, index, *place, question.is_raw(), values_, question.work());
  return json_reply(json);
}

Reply Api::threads(const Question& question) {
  const TickRange range = question.ticks();
  if (!question.error().empty()) return {};
  Json json;
  write_thread_sums(json, question.index(), range);
  return json_reply(json);
}

Reply Api::search(const Question& question) {
  const choice::FunctionFilter filter({question.text("q")});
  const auto& functions = question.index().functions().functions();
  std::vector<std::uint32_t> found;
  std::uint64_t calls = 0;
  for (std::uint32_t i = 0; i < functions.size(); ++i) {
    if (!functions[i].occurs || !filter.keeps(functions[i].name)) continue;
    found.push_back(i);
    calls += functions[i].calls;
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return functions[a].calls > functions[b].calls; });
  Json json;
  json.open('{').list("functions", found, [](std::uint32_t f) { return f; }).field("calls", calls).close('}');
  return json_reply(json);
}

Reply Api::source(const Question& question) {
  const std::uint32_t number = question.function();
  if (!question.error().empty()) return {};
  const TraceIndex& index = question.index();
  const FunctionInfo& function = index.functions().functions()[number];
  const bool is_note = function.module >= 0 &&
                       index.functions().modules()[static_cast<std::size_t>(function.module)] == format::kNotesModule;
  if (function.file < 0 && is_note) return error_reply(404, function.name + " is no function: it has no source");
  if (function.file < 0)
    return error_reply(404, "the trace does not say in which file " + function.name +
                                " is: it was built without -g, or its file was gone");
  const std::string& path = index.functions().files()[static_cast<std::size_t>(function.file)];
  for (const reader::SourceFile& source : index.trace().sources()) {
    if (source.path != path) continue;
    const std::uint32_t end_line = function_end_line(source.text, function.line);
    std::string_view text = source.text;
    std::uint32_t first_line = 1;
    if (text.size() > kSourceWhole) {
      first_line = function.line > 1000 ? function.line - 1000 : 1;
      const std::size_t from = line_offset(text, first_line);
      const std::size_t to = line_offset(text, std::max(end_line, function.line) + 1000);
      text = text.substr(from, std::min(to - from, kSourceWhole));
    }
    Json json;
    const SourceText row{path, function.line, end_line, first_line, text};
    json.open('{');
    write_row(json, index, source_texts(), &row);
    json.close('}');
    return json_reply(json);
  }
  return error_reply(404, "the trace has no text of " + path + ": it was not there when the trace was written");
}

Reply Api::cut(const Question& question) {
  if (server_.cut == nullptr) return error_reply(404, "nothing can be cut here");
  // A call's own time, when one was named: with all that other threads did meanwhile.
  TickRange range = question.ticks();
  if (const auto one = question.call()) range = {one->begin, one->begin + one->duration + 1};
  const TraceIndex& index = question.index();
  const Scope scope = question.scope(range);
  if (!question.error().empty()) return {};
  auto bytes = server_.cut(scope);
  if (!bytes) return error_reply(413, bytes.error().message);
  Reply reply = binary_reply(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
  reply.file_name = std::filesystem::path(index.trace().name()).stem().string() + "-cut.karst";
  return reply;
}

}  // namespace karst::engine
