// SPDX-License-Identifier: MIT
#include "cli/commands/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analysis/values.h"
#include "answers/data.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

using answers::Field;
using answers::FunctionRef;
using answers::Look;
using answers::ProcessRef;
using answers::Relation;
using answers::ThreadRef;
using answers::Type;
using answers::Value;

bool is_none(const Value& value) { return std::holds_alternative<std::monostate>(value); }

/// In letters and digits, as people read it.
struct Words {
  const reader::Trace* trace;
  Type type;
  bool whole = false;  // names of functions; else as plain_name() has them

  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(bool flag) const { return flag ? "yes" : "no"; }
  std::string operator()(std::uint64_t number) const {
    switch (type) {
      case Type::kTime:
      case Type::kDuration:
        return duration_text(number);
      case Type::kBytes:
        return size_text(number);
      case Type::kCount:
        return count_text(number);
      default:
        return fmt::to_string(number);
    }
  }
  std::string operator()(std::int64_t number) const { return fmt::to_string(number); }
  std::string operator()(double share) const { return percent_text(share); }
  std::string operator()(std::string_view text) const { return printable(text); }
  std::string operator()(const std::string& text) const { return printable(text); }
  std::string operator()(FunctionRef ref) const {
    if (ref.function == 0) return {};
    const std::string_view name = trace->function(trace->processes()[ref.process], ref.function).name;
    return printable(whole ? std::string(name) : std::string(plain_name(name)));
  }
  std::string operator()(ThreadRef ref) const {
    return ref.thread == nullptr ? "-" : fmt::format("{} {}", ref.thread->tid, printable(ref.thread->name));
  }
  std::string operator()(ProcessRef ref) const { return fmt::to_string(trace->processes()[ref.process].pid); }
};

std::string words_of(const reader::Trace* trace, const Field& field, const void* row, bool whole) {
  std::string text =
      field.look.words ? field.look.words(row) : std::visit(Words{trace, field.type, whole}, field.get(row));
  if (field.look.most_width == 0) return text;
  return shorten(text, field.look.most_width, field.look.is_name ? Shorten::kName : Shorten::kEnd);
}

/// What rows are sorted by: numbers as such, also those that are texts, and behind these all else by its words.
struct SortKey {
  bool last;  // behind all others, whichever way the field sorts
  bool is_text = false;
  std::int64_t sign = 0;
  std::uint64_t number = 0;
  double real = 0;
  std::string words = {};

  bool operator<(const SortKey& other) const {
    return std::tie(last, is_text, sign, number, real, words) <
           std::tie(other.last, other.is_text, other.sign, other.number, other.real, other.words);
  }
};

SortKey sort_key(const reader::Trace* trace, const Field& field, const void* row) {
  const Value value = field.get(row);
  SortKey key{.last = is_none(value) || (field.look.last && field.look.last(row))};
  if (const auto* const whole = std::get_if<std::uint64_t>(&value)) {
    key.number = *whole;
  } else if (const auto* const number = std::get_if<std::int64_t>(&value)) {
    key.sign = *number < 0 ? -1 : 0;
    key.number = static_cast<std::uint64_t>(*number);
  } else if (const auto* const share = std::get_if<double>(&value)) {
    key.real = *share;
  } else if (const auto* const flag = std::get_if<bool>(&value)) {
    key.number = *flag ? 1 : 0;
  } else if (const auto* const thread = std::get_if<ThreadRef>(&value)) {
    key.number = thread->thread == nullptr ? 0 : thread->thread->tid;
  } else if (const auto* const process = std::get_if<ProcessRef>(&value)) {
    key.number = process->process;
  } else {
    key.words = std::visit(Words{trace, field.type}, value);
    const auto number_of_text = analysis::number_in(key.words);
    key.is_text = !number_of_text;
    key.real = number_of_text.value_or(0);
  }
  return key;
}

void sort(const reader::Trace* trace, const Field& field, std::vector<const void*>& rows) {
  std::vector<std::pair<SortKey, const void*>> keyed;
  keyed.reserve(rows.size());
  for (const void* row : rows) keyed.emplace_back(sort_key(trace, field, row), row);
  const bool up = answers::sorts_upwards(field.type);
  std::stable_sort(keyed.begin(), keyed.end(), [up](const auto& a, const auto& b) {
    if (a.first.last != b.first.last) return b.first.last;
    return up ? a.first < b.first : b.first < a.first;
  });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = keyed[i].second;
}

/// What a field may be called by: its key, and the title above its column where that is one word.
std::vector<std::string> names_of_fields(const std::vector<const Relation*>& relations, bool with_titles) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && name.find(' ') == std::string::npos &&
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const Relation* relation : relations)
    for (const Field& field : relation->fields) {
      if (field.type == Type::kRows) continue;
      add(field.key);
      if (with_titles) add(field.look.title);
    }
  return names;
}

/// "lock wait" of "lock_wait".
std::string in_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// "one,two" with keys for titles. What is no field stays as it is.
std::string as_keys(const Relation& relation, std::string_view columns) {
  std::string keys;
  while (!columns.empty()) {
    const std::string_view name = columns.substr(0, columns.find(','));
    columns.remove_prefix(std::min(name.size() + 1, columns.size()));
    const Field* const field = relation.find(name);
    keys.append(keys.empty() ? "" : ",").append(field == nullptr ? name : field->key);
  }
  return keys;
}

}  // namespace

void add_answer_options(Command command, AnswerOptions& options, const std::vector<const Relation*>& relations,
                        const std::string& words, const std::string& sort, std::size_t limit,
                        const std::vector<std::string>& more_formats) {
  options.sort = sort;
  options.limit = limit;
  command
      .add_option("-n,--limit", options.limit,
                  limit == 0
                      ? fmt::format("Show only the first N {}", words)
                      : fmt::format("Show only the first N {} (text: {}; csv and json: all; 0: all)", words, limit))
      .type_name("N")
      .each([&options](const std::string&) { options.has_limit = true; });
  command
      .add_option("-s,--sort", options.sort,
                  fmt::format("Sort by a column{}: times, sizes and counts greatest first, all else in order",
                              sort.empty() ? "" : " (" + sort + " unless given)"))
      .check(one_of(names_of_fields(relations, true)))
      .type_name("COLUMN");
  command.add_option("--columns", options.columns, "Show these columns, in this order, in text: one,two")
      .type_name("NAMES");
  std::vector<std::string> formats{"text", "csv", "json"};
  formats.insert(formats.end(), more_formats.begin(), more_formats.end());
  add_format_options(command, options.format, formats);
  add_text_options(command, options.text);
}

std::string answer_footer(const Relation& relation, std::string_view example, std::string_view rest) {
  constexpr std::size_t kLine = 80, kMostKey = 16;
  std::size_t width = 0;
  for (const Field& field : relation.fields) width = std::max(width, std::min(kMostKey, field.key.size()));
  std::string text = fmt::format("Output: {}{}", relation.sentence, example);
  text.replace(8, 1, text[8] == 'A' ? "a" : text.substr(8, 1));
  for (const Field& field : relation.fields) {
    const std::string head = fmt::format("  {:{}}  ", field.key, width);
    text += head + wrap(field.sentence, kLine - 1, head.size()) + "\n";
  }
  return text + std::string(rest);
}

Answer::Answer(const reader::Trace* trace, const Relation& relation, const AnswerOptions& options,
               std::vector<const void*> rows)
    : trace_(trace), relation_(relation), options_(options), rows_(std::move(rows)) {
  if (const Field* const field = relation.find(options.sort); field != nullptr) {
    sort(trace, *field, rows_);
    sort_ = field->key;
  }
  columns_ = as_keys(relation, options.columns);
  const bool cut = options.limit != 0 && (options.is_text() || options.has_limit);
  shown_ = cut ? std::min(options.limit, rows_.size()) : rows_.size();
}

bool Answer::is_shown(const Field& field, bool wide) const {
  if (("," + columns_ + ",").find("," + field.key + ",") != std::string::npos) return true;
  if (field.key == sort_) return true;
  if (field.look.shown == Look::Shown::kAsked || (field.look.shown == Look::Shown::kWide && !wide)) return false;
  if (field.type == Type::kProcess && trace_->processes().size() == 1) return false;
  // Words may say something where there is no value.
  return std::any_of(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(shown_), [&](const void* row) {
    return !is_none(field.get(row)) || (field.look.words && field.look.words(row) != "-");
  });
}

Status Answer::known() const {
  if (options_.sort.empty() || !sort_.empty()) return Unit{};
  return Error{fmt::format("there is no column '{}' of {} to sort by; there are: {}", options_.sort,
                           in_words(relation_.name), fmt::join(names_of_fields({&relation_}, false), ", "))};
}

Status Answer::print_table(Screen& screen) const {
  const Result<Table> made = table(screen.width() == 0);
  if (!made) return made.error();
  made->print(screen);
  return Unit{};
}

Result<Table> Answer::table(bool wide) const {
  if (Status sorted = known(); !sorted) return sorted.error();
  // The last field of all is the elastic column, whatever is asked for.
  std::vector<Column> columns;
  std::vector<const Field*> fields;
  const auto is_text = [](Type type) {
    return type == Type::kText || type == Type::kFunction || type == Type::kThread;
  };
  for (const Field& field : relation_.fields) {
    if (field.type == Type::kRows) continue;
    const bool shown = is_shown(field, wide) || &field == &relation_.fields.back();
    fields.push_back(&field);
    columns.push_back({.key = field.key,
                       .title = (field.look.title.empty() ? field.key : field.look.title) +
                                (wide && &field == &relation_.fields.back() ? relation_.behind_title : ""),
                       .left = is_text(field.type),
                       .narrow = shown,
                       .rank = field.key == sort_ ? 0 : field.look.rank,
                       .least_width = field.look.least_width});
  }
  std::string chosen = columns_;
  for (std::size_t i = 0; columns_.empty() && i < columns.size(); ++i)
    if (columns[i].narrow) chosen += (chosen.empty() ? "" : ",") + columns[i].key;
  Table table(std::move(columns),
              fields.back()->type == Type::kFunction || fields.back()->look.is_name ? Shorten::kName : Shorten::kEnd);
  if (Status known = table.choose(chosen); !known) return known.error();
  for (std::size_t i = 0; i < shown_; ++i) {
    std::vector<std::string> cells;
    cells.reserve(fields.size());
    for (const Field* field : fields) cells.push_back(words_of(trace_, *field, rows_[i], field == fields.back()));
    table.add(std::move(cells), wide && relation_.behind ? relation_.behind(rows_[i]) : std::string());
  }
  return table;
}

void Answer::print_csv(Output& output) const {
  answers::Csv csv(trace_, relation_, output);
  for (std::size_t i = 0; i < shown_ && !output.failed(); ++i) csv.row(rows_[i]);
}

void Answer::write_json(Json& json, Output& output) const {
  json.key(relation_.listed_as.empty() ? relation_.name : relation_.listed_as).open('[');
  for (std::size_t i = 0; i < shown_ && !output.failed(); ++i) {
    answers::write_row(json, trace_, relation_, rows_[i]);
    json.flush(output);
  }
  json.close(']');
}

void Answer::say_left_out(Screen& screen, std::string one) const {
  if (one.empty()) one = in_words(relation_.one);
  if (shown_ < rows_.size())
    screen.output().append(fmt::format("({} more; --limit 0: all)\n", plural(rows_.size() - shown_, one.c_str())));
}

void write_answer(const AnswerOptions& options, const Answer& answer, Output& output,
                  const std::function<void(Json&)>& facts) {
  if (options.format == "csv") return answer.print_csv(output);
  Json json;
  json.open('{');
  facts(json);
  answer.write_json(json, output);
  json.close('}').flush(output);
  output.append("\n");
}

int print_answer(const AnswerOptions& options, const Input& input, const Answer& answer,
                 const std::function<void(Json&)>& facts) {
  if (Status sorted = answer.known(); !sorted) return fail(sorted.error());
  warn_partial(input);
  Output output = Output::to_stdout();
  write_answer(options, answer, output, [&](Json& json) {
    json.field("trace", input.trace.name()).field("count", answer.count());
    facts(json);
  });
  return finish_output(output, input.trace);
}

int print_answer(const AnswerOptions& options, const Answer& answer, const std::function<void(Json&)>& facts) {
  if (Status sorted = answer.known(); !sorted) return fail(sorted.error());
  if (options.is_text()) {
    Screen screen(options.text);
    if (Status printed = answer.print_table(screen); !printed) return fail(printed.error());
    answer.say_left_out(screen);
    return screen.finish();
  }
  Output output = Output::to_stdout();
  write_answer(options, answer, output, [&](Json& json) {
    json.field("count", answer.count());
    facts(json);
  });
  return finish_output(output);
}

int print_table_or_data(const AnswerOptions& options, const Input& input, const Answer& answer) {
  if (!options.is_text()) return print_answer(options, input, answer);
  Screen screen(options.text);
  say_partial(screen, input);
  if (Status printed = answer.print_table(screen); !printed) return fail(printed.error());
  answer.say_left_out(screen);
  return screen.finish(&input.trace);
}

}  // namespace karst::cli
