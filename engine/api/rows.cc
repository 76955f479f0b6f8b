#include "engine/api/rows.h"

#include <algorithm>
#include <string>
#include <variant>

namespace karst::engine {
namespace {

using answers::Field;
using answers::Type;

struct ValueWriter {
  Json& json;
  const TraceIndex& index;
  Type type;

  void operator()(std::monostate) const { json.null(); }
  void operator()(bool flag) const { json.value(flag); }
  void operator()(std::uint64_t number) const {
    if (type == Type::kId)
      json.value(std::to_string(number));
    else
      json.value(number);
  }
  void operator()(std::int64_t number) const { json.value(number); }
  void operator()(double number) const { json.value(number, 6); }
  void operator()(std::string_view text) const { json.value(text); }
  void operator()(const std::string& text) const { json.value(text); }
  void operator()(answers::FunctionRef ref) const {
    const auto& functions = index.functions().of_process(ref.process);
    const bool known = ref.function != 0 && ref.function < functions.size();
    json.value(known ? std::int64_t{functions[ref.function]} : std::int64_t{-1});
  }
  void operator()(answers::ThreadRef ref) const {
    const auto& threads = index.threads();
    const auto at = std::find_if(threads.begin(), threads.end(),
                                 [&](const ThreadIndex& thread) { return thread.thread == ref.thread; });
    json.value(ref.thread == nullptr || at == threads.end() ? std::int64_t{-1} : at - threads.begin());
  }
  void operator()(answers::ProcessRef ref) const { json.value(ref.process); }
};

void write_value(Json& json, const TraceIndex& index, const Field& field, const void* row) {
  if (field.type != Type::kRows) return std::visit(ValueWriter{json, index, field.type}, field.get(row));
  if (field.inner == answers::Inner::kRow) {
    bool is_there = false;
    field.each(row, [&](const void* of) {
      is_there = true;
      json.open('{');
      write_row(json, index, *field.rows, of);
      json.close('}');
    });
    if (!is_there) json.null();
    return;
  }
  if (field.inner == answers::Inner::kValues) {
    json.open('[');
    field.each(row, [&](const void* of) { write_value(json, index, field.rows->fields.front(), of); });
    json.close(']');
    return;
  }
  // Rows live as long as the call of `use`: a list for each field takes a round for each.
  json.open('{');
  for (const Field& inner : field.rows->fields) {
    json.key(inner.key).open('[');
    field.each(row, [&](const void* of) { write_value(json, index, inner, of); });
    json.close(']');
  }
  json.close('}');
}

}  // namespace

void write_row(Json& json, const TraceIndex& index, const answers::Relation& relation, const void* row) {
  for (const Field& field : relation.fields) {
    json.key(field.key);
    write_value(json, index, field, row);
  }
}

}  // namespace karst::engine
