// A function whose values were asked for has a description of them. Only calls of such functions are looked up: traces
// without values pay nothing.
#include "engine/api/values.h"

#include <algorithm>
#include <string>

#include "analysis/program_facts.h"
#include "analysis/values.h"

namespace karst::engine {
namespace {

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
      if (!known[id].values.empty() && !analysis::color_of(known[id]) &&
          list.has(process, static_cast<std::uint32_t>(id)) && list.functions()[numbers[id]].occurs)
        found.push_back(numbers[id]);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

class Values::OfThread {
 public:
  explicit OfThread(NotedCalls calls) : calls_(std::move(calls)), values_(*calls_.calls) { calls_.keep_notes_only(); }

  const analysis::CallValues& values() const { return values_; }
  bool has(std::uint32_t row) const { return values_.has(row); }
  std::size_t bytes() const { return calls_.bytes() + values_.bytes(); }
  std::vector<analysis::Value> read(const TraceIndex& index, const ThreadIndex& thread,
                                    const reader::Note* note) const {
    if (note == nullptr) return {};
    return analysis::values_in(index.trace(), *thread.thread, *calls_.calls, *note);
  }
  std::vector<analysis::Value> arguments(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row) const {
    return read(index, thread, values_.arguments(row));
  }
  std::vector<analysis::Value> returned(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row) const {
    return read(index, thread, values_.returned(row));
  }

 private:
  NotedCalls calls_;
  analysis::CallValues values_;
};

std::shared_ptr<const Values::OfThread> Values::find(const TraceIndex& index, const ThreadIndex& thread,
                                                     std::uint32_t row, Work* work) {
  const reader::Process& process = index.trace().processes()[thread.thread->process];
  if (index.trace().function(process, thread.calls.function[row]).values.empty()) return nullptr;
  return threads_.find(index, thread, work);
}

std::shared_ptr<const analysis::CallValues> Values::of_thread(const TraceIndex& index, const ThreadIndex& thread,
                                                              Work* work) {
  const std::vector<reader::Function>& known = index.trace().processes()[thread.thread->process].functions;
  if (std::none_of(known.begin(), known.end(), [](const reader::Function& f) { return !f.values.empty(); }))
    return nullptr;
  const auto of = threads_.find(index, thread, work);
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

}  // namespace karst::engine
