// SPDX-License-Identifier: MIT
#include "answers/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace karst::answers {
namespace {

constexpr int kShareDecimals = 6;

void append(Output& to, char c) {
  *to.room(1) = c;
  to.take(1);
}

template <typename Number>
void append_number(Output& to, Number number) {
  constexpr std::size_t kMost = 24;
  char* const at = to.room(kMost);
  to.take(static_cast<std::size_t>(std::to_chars(at, at + kMost, number).ptr - at));
}

/// Most texts are plain, and are copied as they are.
void append_csv(Output& to, std::string_view text) {
  bool is_plain = text.size() + 2 <= Output::kMostRoom;
  for (const char c : text) is_plain &= c >= ' ' && c < 0x7f && c != '"';  // without a branch: many at once
  if (!is_plain) return to.append(csv_field(text));
  char* const at = to.room(text.size() + 2);
  *at = '"';
  std::copy(text.begin(), text.end(), at + 1);
  at[text.size() + 1] = '"';
  to.take(text.size() + 2);
}

struct JsonSink final : Sink {
  Json& json;
  const reader::Trace* trace;
  const Field* field = nullptr;
  bool alone = false;  // the value without its name

  JsonSink(Json& to, const reader::Trace* of) : json(to), trace(of) {}
  Json& name() { return alone ? json : json.known_key(field->name); }
  template <typename T>
  void write(const T& value) {
    name().value(value);
  }
  void none() override {}
  void flag(bool flag) override { write(flag); }
  void whole(std::uint64_t number) override { write(number); }
  void number(std::int64_t number) override { write(number); }
  void real(double number) override { name().value(number, kShareDecimals); }
  void text(std::string_view text) override { write(text); }
  void function(FunctionRef ref) override {
    const bool is_one = ref.function != 0;
    write(is_one ? std::string_view(trace->function(trace->processes()[ref.process], ref.function).name) : "");
  }
  void thread(ThreadRef ref) override {
    if (ref.thread == nullptr) return;
    write(ref.thread->tid);
    if (!alone) json.known_key(field->key).value(ref.thread->name);
  }
  void process(ProcessRef ref) override { write(trace->processes()[ref.process].pid); }
};

void write_inner(Json& json, const reader::Trace* trace, const Field& field, const void* row) {
  if (field.inner == Inner::kRow) {
    field.each(row, [&](const void* inner) {
      json.key(field.key).open('{');
      write_fields(json, trace, *field.rows, inner);
      json.close('}');
    });
    return;
  }
  JsonSink alone(json, trace);
  alone.alone = true;
  const bool on_lines = has_rows(*field.rows);
  json.key(field.key).open('[');
  field.each(row, [&](const void* inner) {
    if (field.inner == Inner::kValues) return field.rows->fields.front().put(inner, alone);
    if (on_lines) json.line();
    json.open('{');
    write_fields(json, trace, *field.rows, inner);
    json.close('}');
  });
  json.close(']');
}

}  // namespace

std::string csv_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : printable(text)) field.append(c == '"' ? 2 : 1, c);
  return field + "\"";
}

Csv::Csv(const reader::Trace* trace, const Relation& relation, Output& output)
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
  bool is_first = true;
  for (const Field& field : relation_.fields) {
    if (field.type == Type::kRows) continue;
    if (!is_first) append(output_, ',');
    is_first = false;
    field_ = &field;
    field.put(row, *this);
  }
  append(output_, '\n');
}

void Csv::none() {
  if (field_->type == Type::kThread) append(output_, ',');
}
void Csv::flag(bool flag) { append(output_, flag ? '1' : '0'); }
void Csv::whole(std::uint64_t number) { append_number(output_, number); }
void Csv::number(std::int64_t number) { append_number(output_, number); }
void Csv::real(double number) {
  std::string text = fmt::format("{:.{}f}", number, kShareDecimals);
  text.erase(text.find_last_not_of('0') + 1);
  output_.append(text.ends_with('.') ? text.substr(0, text.size() - 1) : text);
}
void Csv::text(std::string_view text) { append_csv(output_, text); }
void Csv::function(FunctionRef ref) {
  output_.append(ref.function == 0 ? std::string_view("\"\"")
                                   : std::string_view(names_.of(trace_->processes()[ref.process], ref.function)));
}
void Csv::thread(ThreadRef ref) {
  if (ref.thread == nullptr) return none();
  if (thread_.thread != ref.thread)
    thread_ = {ref.thread, std::to_string(ref.thread->tid) + "," + csv_field(ref.thread->name)};
  output_.append(thread_.text);
}
void Csv::process(ProcessRef ref) { append_number(output_, trace_->processes()[ref.process].pid); }

void write_fields(Json& json, const reader::Trace* trace, const Relation& relation, const void* row) {
  JsonSink writer(json, trace);
  for (const Field& field : relation.fields) {
    if (field.type == Type::kRows) {
      write_inner(json, trace, field, row);
      continue;
    }
    writer.field = &field;
    field.put(row, writer);
  }
}

void write_row(Json& json, const reader::Trace* trace, const Relation& relation, const void* row) {
  json.line().open('{');
  write_fields(json, trace, relation, row);
  json.close('}');
}

}  // namespace karst::answers
