#include "answers/data.h"

#include <charconv>

#include "base/text.h"

namespace karst::answers {
namespace {

std::string_view name_of(const reader::Trace& trace, FunctionRef ref) {
  if (ref.function == 0) return {};
  return trace.function(trace.processes()[ref.process], ref.function).name;
}

template <typename Number>
void append_number(std::string& to, Number number) {
  char digits[24];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

/// Most texts are plain, and are copied as they are.
void append_csv(std::string& to, std::string_view text) {
  bool is_plain = true;
  for (const char c : text) is_plain &= c >= ' ' && c < 0x7f && c != '"';  // without a branch: many at once
  if (is_plain)
    to.append(1, '"').append(text).append(1, '"');
  else
    to += csv_field(text);
}

}  // namespace

std::string csv_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : printable(text)) field.append(c == '"' ? 2 : 1, c);
  return field + "\"";
}

Csv::Csv(const reader::Trace& trace, const Relation& relation, Output& output)
    : trace_(trace), relation_(relation), output_(output), names_(trace, csv_field) {
  std::string head;
  for (const Field& field : relation.fields) {
    if (field.type == Type::kRows) continue;
    head += (head.empty() ? "" : ",") + field.name;
    if (field.type == Type::kThread) head += "," + field.key;
  }
  output_.append(head + "\n");
}

void Csv::row(const void* row) {
  line_.clear();
  for (const Field& field : relation_.fields)
    if (field.type != Type::kRows) add(field, field.get(row));
  line_.back() = '\n';
  output_.append(line_);
}

void Csv::add(const Field& field, const Value& value) {
  struct Adder {
    const reader::Trace& trace;
    ReadyNames& names;
    ReadyThread& latest;
    std::string& line;
    void operator()(std::monostate) const {}
    void operator()(bool flag) const { line += flag ? '1' : '0'; }
    void operator()(std::uint64_t number) const { append_number(line, number); }
    void operator()(std::int64_t number) const { append_number(line, number); }
    void operator()(std::string_view text) const { append_csv(line, text); }
    void operator()(const std::string& text) const { append_csv(line, text); }
    void operator()(FunctionRef ref) const {
      line += ref.function == 0 ? "\"\"" : std::string_view(names.of(trace.processes()[ref.process], ref.function));
    }
    void operator()(ThreadRef ref) const {
      if (ref.thread != nullptr && latest.thread != ref.thread) {
        latest = {ref.thread, {}};
        append_number(latest.text, ref.thread->tid);
        latest.text += ',';
        append_csv(latest.text, ref.thread->name);
      }
      line += ref.thread != nullptr ? std::string_view(latest.text) : ",";
    }
    void operator()(ProcessRef ref) const { append_number(line, trace.processes()[ref.process].pid); }
  };
  std::visit(Adder{trace_, names_, thread_, line_}, value);
  if (field.type == Type::kThread && std::holds_alternative<std::monostate>(value)) line_ += ',';
  line_ += ',';
}

void write_fields(Json& json, const reader::Trace& trace, const Relation& relation, const void* row) {
  struct Writer {
    Json& json;
    const reader::Trace& trace;
    const Field& field;
    void operator()(std::monostate) const {}
    void operator()(bool flag) const { json.known_key(field.name).value(flag); }
    void operator()(std::uint64_t number) const { json.known_key(field.name).value(number); }
    void operator()(std::int64_t number) const { json.known_key(field.name).value(number); }
    void operator()(std::string_view text) const { json.known_key(field.name).value(text); }
    void operator()(const std::string& text) const { json.known_key(field.name).value(text); }
    void operator()(FunctionRef ref) const { json.known_key(field.name).value(name_of(trace, ref)); }
    void operator()(ThreadRef ref) const {
      if (ref.thread == nullptr) return;
      json.known_key(field.name).value(ref.thread->tid).field(field.key, ref.thread->name);
    }
    void operator()(ProcessRef ref) const { json.known_key(field.name).value(trace.processes()[ref.process].pid); }
  };
  for (const Field& field : relation.fields) {
    if (field.type != Type::kRows) {
      std::visit(Writer{json, trace, field}, field.get(row));
      continue;
    }
    json.key(field.key).open('[');
    field.each(row, [&](const void* inner) {
      json.open('{');
      write_fields(json, trace, *field.rows, inner);
      json.close('}');
    });
    json.close(']');
  }
}

void write_row(Json& json, const reader::Trace& trace, const Relation& relation, const void* row) {
  json.line().open('{');
  write_fields(json, trace, relation, row);
  json.close('}');
}

}  // namespace karst::answers
