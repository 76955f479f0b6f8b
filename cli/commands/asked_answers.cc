// SPDX-License-Identifier: MIT
#include "cli/commands/asked_answers.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "answers/check.h"
#include "answers/data.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/commands/check_all.h"
#include "cli/input/detectors.h"
#include "sql/columns.h"
#include "sql/database.h"
#include "sql/tables.h"
#include "sql/units.h"

namespace karst::cli {
namespace {

using sql::AnswerColumn;
using SteadyClock = std::chrono::steady_clock;

const char* word_of(AnswerColumn::Kind kind) {
  using Kind = AnswerColumn::Kind;
  return kind == Kind::kNumber ? "number" : kind == Kind::kFlag ? "flag" : kind == Kind::kNested ? "nested" : "text";
}

/// Rows as lists of texts, as long as there is room for them. Those beyond are counted for a while.
class PageSink final : public sql::AnswerSink {
 public:
  void columns(const std::vector<AnswerColumn>& columns) override { columns_ = columns; }

  bool row(const std::vector<std::optional<std::string_view>>& values) override {
    if (count_ >= kMostAnswerRows || rows_.size() >= kMostAnswerBytes) return count_more();
    rows_ += count_ == 0 ? "[" : ",[";
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (at != 0) rows_ += ',';
      add(values[at]);
    }
    rows_ += ']';
    ++count_;
    return true;
  }

  std::string take() {
    Json json;
    json.open('{').key("columns").open('[');
    for (const AnswerColumn& column : columns_) {
      const bool is_number = column.kind == AnswerColumn::Kind::kNumber;
      json.open('{').field("name", column.name).field("kind", word_of(column.kind));
      json.field("unit", is_number ? sql::unit_of_column(column.name) : "").close('}');
    }
    json.close(']').key("rows").open('[').raw(rows_).close(']');
    json.field("more", more_).field("counted", !gave_up_).field("cut", cut_).close('}');
    return json.take();
  }

 private:
  void add(const std::optional<std::string_view>& value) {
    if (!value) {
      rows_ += "null";
      return;
    }
    std::size_t size = std::min(value->size(), kMostCellBytes);
    // Not within a character of UTF-8.
    while (size < value->size() && size != 0 && (static_cast<unsigned char>((*value)[size]) & 0xC0U) == 0x80U) --size;
    cut_ |= size < value->size();
    append_json_string(rows_, value->substr(0, size));
  }

  bool count_more() {
    constexpr auto kLongest = std::chrono::seconds(1);
    if (more_ == 0) give_up_ = SteadyClock::now() + kLongest;
    ++more_;
    gave_up_ = more_ % 1024 == 0 && SteadyClock::now() > give_up_;
    return !gave_up_;
  }

  std::vector<AnswerColumn> columns_;
  std::string rows_;
  std::size_t count_ = 0;
  std::uint64_t more_ = 0;
  bool cut_ = false;
  bool gave_up_ = false;
  SteadyClock::time_point give_up_;
};

/// With what can be done about it.
Error explained(const Error& error) {
  if (error.message.find("Out of Memory") != std::string::npos)
    return {error.message + "\nkarst query --memory 8G lets it use more"};
  if (error.message.find("external_access") != std::string::npos ||
      error.message.find("disabled by config") != std::string::npos)
    return {error.message + "\nThe page's SQL reads the trace alone; karst query --allow-files reads and writes files"};
  return error;
}

void write_table(Json& json, const sql::Table& table) {
  const answers::Relation& relation = *table.relation;
  json.open('{').field("name", relation.name).field("sentence", relation.sentence).key("columns").open('[');
  for (const sql::Column& column : sql::columns_of(relation, false)) {
    json.open('{').field("name", column.name).field("type", sql::type_name(column.type));
    json.field("sentence", column.sentence).close('}');
  }
  json.close(']').close('}');
}

}  // namespace

std::string error_json(const Error& error) {
  Json json;
  json.open('{').field("error", error.message).close('}');
  return json.take();
}

std::string query_json(const Inputs& input, const std::string& sql) {
  if (sql.find('\0') != std::string::npos) return error_json({"the SQL has a byte 0 in it"});
  const auto database = open_database(input, {});
  if (!database) return error_json(database.error());
  PageSink sink;
  if (const Status asked = (*database)->ask(sql, sink); !asked) return error_json(explained(asked.error()));
  return sink.take();
}

std::string check_json(const Inputs& input) {
  const auto all = find_detectors({});
  if (!all) return error_json(all.error());
  Found found;
  if (const Status checked = check_trace(all->detectors, input, found); !checked) return error_json(checked.error());
  found.sort();
  Json json;
  json.open('{').key("findings").open('[');
  for (const answers::CheckFinding& of : found.findings)
    answers::write_row(json, nullptr, answers::check_findings(), &of);
  json.close(']').key("outcomes").open('[');
  for (const answers::CheckOutcome& of : found.outcomes)
    answers::write_row(json, nullptr, answers::check_outcomes(), &of);
  json.close(']').list("failures", all->failures, [](const std::string& one) { return one; });
  json.list("notices", all->notices, [](const std::string& one) { return one; }).close('}');
  return json.take();
}

std::string schema_json(const std::string& missing) {
  Json json;
  json.open('{').field("missing", missing).key("tables").open('[');
  for (const sql::Table& table : sql::tables()) write_table(json, table);
  json.close(']').key("macros").open('[');
  for (const sql::Derived& one : sql::derived())
    json.open('{').field("name", one.name).field("sentence", one.sentence).close('}');
  json.close(']').close('}');
  return json.take();
}

}  // namespace karst::cli
