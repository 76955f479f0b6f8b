// A function whose values were asked for has a description of them. Only calls of such functions are looked up: traces
// without values pay nothing.
#include "view/api/values.h"

#include <algorithm>
#include <string>

#include "analysis/values.h"
#include "reader/partial.h"

namespace karst::view {
namespace {

constexpr std::size_t kKnownThreads = 16;

void write_list(Json& json, const char* name, const std::vector<analysis::Value>& values) {
  if (values.empty()) return;
  json.key(name).open('[');
  for (const analysis::Value& value : values)
    json.open('{').field("name", value.name).field("text", value.text).close('}');
  json.close(']');
}

}  // namespace

std::vector<std::uint32_t> functions_with_values(const TraceIndex& index) {
  const FunctionList& list = index.functions();
  std::vector<std::uint32_t> found;
  for (std::uint32_t process = 0; process < index.trace().processes().size(); ++process) {
    const std::vector<reader::Function>& known = index.trace().processes()[process].functions;
    const auto& numbers = list.of_process(process);
    for (std::size_t id = 0; id < known.size() && id < numbers.size(); ++id)
      if (!known[id].values.empty() && list.has(process, static_cast<std::uint32_t>(id)) &&
          list.functions()[numbers[id]].occurs)
        found.push_back(numbers[id]);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

class Values::OfThread {
 public:
  explicit OfThread(std::shared_ptr<const reader::Calls> calls) : calls_(std::move(calls)), values_(*calls_) {}
  /// Of calls that nobody else has: only their notes are kept.
  explicit OfThread(const std::shared_ptr<reader::Calls>& calls) : calls_(calls), values_(*calls) {
    calls->function = {};
    calls->begin = {};
    calls->duration = {};
    calls->parent = {};
    calls->depth = {};
    calls->marks = {};
  }

  const analysis::CallValues& values() const { return values_; }
  bool has(std::uint32_t row) const { return values_.has(row); }
  std::vector<analysis::Value> read(const TraceIndex& index, const ThreadIndex& thread,
                                    const reader::Note* note) const {
    if (note == nullptr) return {};
    return analysis::values_in(index.trace(), *thread.thread, *calls_, *note);
  }
  std::vector<analysis::Value> arguments(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row) const {
    return read(index, thread, values_.arguments(row));
  }
  std::vector<analysis::Value> returned(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row) const {
    return read(index, thread, values_.returned(row));
  }

 private:
  std::shared_ptr<const reader::Calls> calls_;
  analysis::CallValues values_;
};

std::shared_ptr<const Values::OfThread> Values::find(const TraceIndex& index, const ThreadIndex& thread,
                                                     std::uint32_t row, Work* work) {
  const reader::Process& process = index.trace().processes()[thread.thread->process];
  if (index.trace().function(process, thread.calls.function[row]).values.empty()) return nullptr;
  return made(index, thread, work);
}

std::shared_ptr<const Values::OfThread> Values::made(const TraceIndex& index, const ThreadIndex& thread, Work* work) {
  {
    const std::lock_guard lock(mutex_);
    for (auto at = known_.begin(); at != known_.end(); ++at) {
      if (at->first != &thread) continue;
      std::rotate(known_.begin(), at, at + 1);
      return known_.front().second;
    }
  }
  std::shared_ptr<const OfThread> fresh;
  if (thread.owned != nullptr) {
    fresh = std::make_shared<const OfThread>(thread.owned);
  } else {
    reader::RebuildLimits limits;
    if (work != nullptr) limits.stop[0] = &work->stop;
    auto calls = std::make_shared<reader::Calls>(reader::rebuild_calls(index.trace(), *thread.thread, limits));
    if (is_stopped(work)) return nullptr;
    fresh = std::make_shared<const OfThread>(std::move(calls));
  }
  const std::lock_guard lock(mutex_);
  known_.insert(known_.begin(), {&thread, fresh});
  if (known_.size() > kKnownThreads) known_.resize(kKnownThreads);
  return fresh;
}

std::shared_ptr<const analysis::CallValues> Values::of_thread(const TraceIndex& index, const ThreadIndex& thread,
                                                              Work* work) {
  const std::vector<reader::Function>& known = index.trace().processes()[thread.thread->process].functions;
  if (std::none_of(known.begin(), known.end(), [](const reader::Function& f) { return !f.values.empty(); }))
    return nullptr;
  const auto of = made(index, thread, work);
  return of == nullptr ? nullptr : std::shared_ptr<const analysis::CallValues>(of, &of->values());
}

Values::Values() = default;
Values::~Values() = default;

void Values::write(Json& json, const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row, Work* work) {
  const auto values = find(index, thread, row, work);
  if (values == nullptr) return;
  write_list(json, "arguments", values->arguments(index, thread, row));
  write_list(json, "returned", values->returned(index, thread, row));
}

void Values::write_calls(Json& json, const TraceIndex& index, const ThreadIndex& thread,
                         const std::vector<std::uint32_t>& rows, Work* work) {
  json.open('{').key("calls").open('[');
  for (const std::uint32_t row : rows) {
    const auto values = find(index, thread, row, work);
    if (values == nullptr || !values->has(row)) continue;
    json.open('{').field("index", row);
    write_list(json, "arguments", values->arguments(index, thread, row));
    write_list(json, "returned", values->returned(index, thread, row));
    json.close('}');
  }
  json.close(']').close('}');
}

}  // namespace karst::view
