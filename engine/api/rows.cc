// SPDX-License-Identifier: MIT
#include "engine/api/rows.h"

#include <algorithm>
#include <string>
#include <variant>

namespace karst::engine {
namespace {

using answers::Field;
using answers::Inner;
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

void write_object(Json& json, const TraceIndex& index, const answers::Relation& relation, const void* row) {
  json.open('{');
  write_row(json, index, relation, row);
  json.close('}');
}

void write_value(Json& json, const TraceIndex& index, const Field& field, const void* row);

bool is_known_somewhere(const Field& rows, const Field& inner, const void* row) {
  bool known = false;
  rows.each(row, [&](const void* of) { known |= !std::holds_alternative<std::monostate>(inner.get(of)); });
  return known;
}

/// A list for each field; an empty one where no row has a value.
void write_columns(Json& json, const TraceIndex& index, const Field& field, const void* row) {
  // Rows live as long as the call of `use`: a list for each field takes a round for each.
  json.open('{');
  for (const Field& inner : field.rows->fields) {
    json.key(inner.key).open('[');
    if (!inner.may_lack || is_known_somewhere(field, inner, row))
      field.each(row, [&](const void* of) { write_value(json, index, inner, of); });
    json.close(']');
  }
  json.close('}');
}

void write_inner(Json& json, const TraceIndex& index, const Field& field, const void* row) {
  if (field.inner == Inner::kRow) {
    bool is_there = false;
    field.each(row, [&](const void* of) {
      is_there = true;
      write_object(json, index, *field.rows, of);
    });
    if (!is_there) json.null();
    return;
  }
  const bool is_list = field.inner == Inner::kValues;
  if (!is_list && !answers::has_rows(*field.rows)) return write_columns(json, index, field, row);
  json.open('[');
  field.each(row, [&](const void* of) {
    is_list ? write_value(json, index, field.rows->fields.front(), of) : write_object(json, index, *field.rows, of);
  });
  json.close(']');
}

void write_value(Json& json, const TraceIndex& index, const Field& field, const void* row) {
  if (field.type == Type::kRows) return write_inner(json, index, field, row);
  std::visit(ValueWriter{json, index, field.type}, field.get(row));
}

}  // namespace

void write_row(Json& json, const TraceIndex& index, const answers::Relation& relation, const void* row) {
  for (const Field& field : relation.fields) {
    json.key(field.key);
    write_value(json, index, field, row);
  }
}

}  // namespace karst::engine
