// SPDX-License-Identifier: MIT
#include "answers/relation.h"

#include <algorithm>
#include <utility>

#include "analysis/selection.h"

namespace karst::answers {

std::string name_for_programs(const std::string& key, Type type) {
  switch (type) {
    case Type::kTime:
    case Type::kDuration:
      return key + "_ns";
    case Type::kThread:
      return key == "thread" ? "tid" : key + "_tid";
    case Type::kProcess:
      return key == "process" ? "pid" : key + "_pid";
    default:
      return key;
  }
}

namespace {

struct ValueSink final : Sink {
  Value value;

  void none() override {}
  void flag(bool flag) override { value = flag; }
  void whole(std::uint64_t number) override { value = number; }
  void number(std::int64_t number) override { value = number; }
  void real(double number) override { value = number; }
  void text(std::string_view text) override { value = std::string(text); }
  void function(FunctionRef ref) override { value = ref; }
  void thread(ThreadRef ref) override { value = ref; }
  void process(ProcessRef ref) override { value = ref; }
};

}  // namespace

Value Field::get(const void* row) const {
  ValueSink sink;
  put(row, sink);
  return std::move(sink.value);
}

const Field* Relation::find(std::string_view called) const {
  if (called.empty()) return nullptr;
  const auto at = std::find_if(fields.begin(), fields.end(),
                               [&](const Field& field) { return field.key == called || field.look.title == called; });
  return at == fields.end() ? nullptr : &*at;
}

std::vector<Field> some_of(const Relation& relation, std::initializer_list<std::string_view> keys) {
  std::vector<Field> found;
  for (const std::string_view key : keys) found.push_back(*relation.find(key));
  return found;
}

namespace {

void add_with_inner(std::vector<const Relation*>& all, const Relation& relation) {
  if (std::find(all.begin(), all.end(), &relation) != all.end()) return;
  for (const Field& field : relation.fields)
    if (field.type == Type::kRows && field.inner != Inner::kValues) add_with_inner(all, *field.rows);
  all.push_back(&relation);
}

}  // namespace

std::vector<const Relation*> with_inner(const std::vector<const Relation*>& relations) {
  std::vector<const Relation*> all;
  for (const Relation* relation : relations) add_with_inner(all, *relation);
  return all;
}

bool has_rows(const Relation& relation) {
  return std::any_of(relation.fields.begin(), relation.fields.end(),
                     [](const Field& field) { return field.type == Type::kRows; });
}

const Relation& values_of(Type type) {
  static const std::vector<Relation> all = [] {
    std::vector<Relation> made;
    for (auto of = Type::kTime; of != Type::kRows; of = static_cast<Type>(static_cast<int>(of) + 1))
      made.push_back(
          {"values",
           "value",
           "A row for each value",
           {field<Value>("value", of, "it alone", [](const Value& value) -> const Value& { return value; })}});
    return made;
  }();
  return all[static_cast<std::size_t>(type)];
}

bool sorts_upwards(Type type) {
  switch (type) {
    case Type::kDuration:
    case Type::kBytes:
    case Type::kCount:
    case Type::kShare:
    case Type::kReal:
    case Type::kFlag:
      return false;
    default:
      return true;
  }
}

Times::Times(const reader::Trace& trace) : trace_(&trace), start_(analysis::first_ticks(trace)) {}

}  // namespace karst::answers
