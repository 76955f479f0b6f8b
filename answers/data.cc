// SPDX-License-Identifier: MIT
#include "answers/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/text.h"

namespace karst::answers {
namespace {

constexpr int kShareDecimals = 6;

/// What a number, a comma and quotes take at most.
constexpr std::size_t kMostOfField = 32;

/// Whether 8 characters of ASCII all stand for themselves: none is a control character, DEL or a quote.
bool are_plain(std::uint64_t eight) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  const auto below = [](std::uint64_t all, std::uint64_t bound) { return (all - kOnes * bound) & ~all & kHigh; };
  const std::uint64_t quotes = eight ^ (kOnes * '"');
  return ((eight | below(eight, ' ') | below(quotes, 1) | (eight + kOnes)) & kHigh) == 0;
}

/// Most texts are plain, and are copied as they are.
bool is_plain(std::string_view text) {
  constexpr std::size_t kEight = 8;
  std::uint64_t eight = 0;
  const auto plain_at = [&](std::size_t at) {
    std::memcpy(&eight, text.data() + at, kEight);
    return are_plain(eight);
  };
  if (text.size() >= kEight) {
    for (std::size_t at = 0; at + kEight < text.size(); at += kEight)
      if (!plain_at(at)) return false;
    return plain_at(text.size() - kEight);  // the last ones, some of them once more
  }
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f && c != '"'; });
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
    : trace_(trace), output_(output), names_(trace, csv_field) {
  std::string head;
  for (const Field& field : relation.fields) {
    if (field.type == Type::kRows) continue;
    fields_.push_back(&field);
    head += (head.empty() ? "" : ",") + field.name;
    if (field.type == Type::kThread) head += "," + field.key;
  }
  output_.append(head + "\n");
}

// Behind each field stands a comma, and a line feed in place of the last one. There is room for all fields but texts,
// which see to it themselves.
void Csv::row(const void* row) {
  take_room();
  for (const Field* field : fields_) {
    field_ = field;
    field->put(row, *this);
    *at_++ = ',';
  }
  at_[-1] = '\n';
  output_.take(static_cast<std::size_t>(at_ - begin_));
}

void Csv::take_room() {
  begin_ = at_ = output_.room(Output::kMostRoom);
  texts_end_ = begin_ + (Output::kMostRoom - std::min(Output::kMostRoom, (fields_.size() + 1) * kMostOfField));
}

/// A text that there is no room for.
void Csv::spill(std::string_view text) {
  output_.take(static_cast<std::size_t>(at_ - begin_));
  output_.append(text);
  take_room();
}

void Csv::put(std::string_view text) {
  if (text.size() > static_cast<std::size_t>(at_ < texts_end_ ? texts_end_ - at_ : 0)) return spill(text);
  std::memcpy(at_, text.data(), text.size());
  at_ += text.size();
}
template <typename Number>
void Csv::put_number(Number number) {
  at_ = std::to_chars(at_, at_ + kMostOfField, number).ptr;
}

void Csv::none() {
  if (field_->type == Type::kThread) *at_++ = ',';
}
void Csv::flag(bool flag) { *at_++ = flag ? '1' : '0'; }
void Csv::whole(std::uint64_t number) { put_number(number); }
void Csv::number(std::int64_t number) { put_number(number); }
void Csv::real(double number) {
  std::string text = fmt::format("{:.{}f}", number, kShareDecimals);
  text.erase(text.find_last_not_of('0') + 1);
  put(text.ends_with('.') ? text.substr(0, text.size() - 1) : text);
}
void Csv::text(std::string_view text) {
  if (text.empty()) {
    at_[0] = at_[1] = '"';
    at_ += 2;
    return;
  }
  if (!is_plain(text)) return put(csv_field(text));
  *at_++ = '"';
  put(text);
  *at_++ = '"';
}
void Csv::function(FunctionRef ref) {
  put(ref.function == 0 ? std::string_view("\"\"")
                        : std::string_view(names_.of(trace_->processes()[ref.process], ref.function)));
}
void Csv::thread(ThreadRef ref) {
  if (ref.thread == nullptr) return none();
  if (thread_.thread != ref.thread)
    thread_ = {ref.thread, std::to_string(ref.thread->tid) + "," + csv_field(ref.thread->name)};
  put(thread_.text);
}
void Csv::process(ProcessRef ref) { put_number(trace_->processes()[ref.process].pid); }

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
