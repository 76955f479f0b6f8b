// SPDX-License-Identifier: MIT
// A function whose values were asked for has a description of them. Only calls of such functions are looked up: traces
// without values pay nothing.
#include "engine/api/values.h"

#include <algorithm>
#include <string>

#include "analysis/program_facts.h"
#include "analysis/values.h"
#include "engine/api/rows.h"

namespace karst::engine {
namespace {

using answers::field;
using answers::Relation;
using answers::Type;

const Relation& noted_values() {
  using Row = analysis::Value;
  static const Relation relation{
      "noted_values",
      "named_value",
      "A row for each value that was noted of a call",
      {field<Row>("name", Type::kText, "what it is called", [](const Row& r) -> const std::string& { return r.name; }),
       field<Row>("text", Type::kText, "what it was", [](const Row& r) -> const std::string& { return r.text; })}};
  return relation;
}

struct ValuedCall {
  std::uint32_t index;
  NotedOfCall noted;
};

const Relation& valued_calls() {
  static const Relation relation = [] {
    Relation made{"valued_calls", "valued_call", "A row for each call of which something was noted",
                  answers::fields_of<ValuedCall>(
                      fields_of_noted(), [](const ValuedCall& r) -> const auto& { return r.noted; })};
    made.fields.push_back(field<ValuedCall>("index", Type::kNumber, "its place in its thread",
                                            [](const ValuedCall& r) { return r.index; }));
    return made;
  }();
  return relation;
}

using ValueAnswer = std::vector<ValuedCall>;

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

std::vector<answers::Field> fields_of_noted() {
  const auto values = [](const char* key, const char* sentence, std::vector<analysis::Value> NotedOfCall::*of) {
    return answers::rows<NotedOfCall>(key, sentence, noted_values(),
                                      [of](const NotedOfCall& r, const answers::UseRow& use) {
                                        for (const analysis::Value& value : r.*of) use(&value);
                                      });
  };
  return {values("arguments", "what it was given", &NotedOfCall::arguments),
          values("returned", "what it returned; members of a structure have names", &NotedOfCall::returned)};
}

const Relation& value_answers() {
  static const Relation relation{
      "value_answers",
      "value_answer",
      "Values of calls",
      {answers::rows<ValueAnswer>("calls", "those of which something is noted", valued_calls(),
                                  [](const ValueAnswer& r, const answers::UseRow& use) {
                                    for (const ValuedCall& call : r) use(&call);
                                  })}};
  return relation;
}

NotedOfCall Values::of_call(const TraceIndex& index, const ThreadIndex& thread, std::uint32_t row, Work* work) {
  const auto values = find(index, thread, row, work);
  if (values == nullptr) return {};
  return {values->arguments(index, thread, row), values->returned(index, thread, row)};
}

void Values::write_calls(Json& json, const TraceIndex& index, const ThreadIndex& thread,
                         const std::vector<std::uint32_t>& rows, Work* work) {
  ValueAnswer answer;
  for (const std::uint32_t row : rows)
    if (const auto values = find(index, thread, row, work); values != nullptr && values->has(row))
      answer.push_back({row, {values->arguments(index, thread, row), values->returned(index, thread, row)}});
  json.open('{');
  write_row(json, index, value_answers(), &answer);
  json.close('}');
}

}  // namespace karst::engine
