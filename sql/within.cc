// SPDX-License-Identifier: MIT
#include "sql/within.h"

#include <fmt/format.h>

#include <deque>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace karst::sql {
namespace {

using answers::Field;
using answers::Relation;
using answers::Value;

/// A row's values, which outlive what they were read from.
using Values = std::vector<Value>;

/// Adds values to a row.
class Keeper final : answers::Sink {
 public:
  explicit Keeper(Values& values) : values_(values) {}
  void take(const Field& field, const void* row) { field.put(row, *this); }

 private:
  void none() override { values_.emplace_back(); }
  void flag(bool flag) override { values_.emplace_back(flag); }
  void whole(std::uint64_t number) override { values_.emplace_back(number); }
  void number(std::int64_t number) override { values_.emplace_back(number); }
  void real(double number) override { values_.emplace_back(number); }
  void text(std::string_view text) override { values_.emplace_back(std::string(text)); }
  void function(answers::FunctionRef ref) override { values_.emplace_back(ref); }
  void thread(answers::ThreadRef ref) override { values_.emplace_back(ref); }
  void process(answers::ProcessRef ref) override { values_.emplace_back(ref); }

  Values& values_;
};

/// The field of this key; `holds_rows`: among those that hold rows, else among the others.
const Field& field_of(const Relation& relation, std::string_view key, bool holds_rows) {
  for (const Field& field : relation.fields)
    if (field.key == key && (field.type == answers::Type::kRows) == holds_rows) return field;
  throw std::logic_error(fmt::format("no field {} in {}", key, relation.name));
}

struct Path {
  Outer outer;
  std::vector<Level> levels;

  /// Of the rows that hold those of `level`.
  const std::vector<const char*>& keys(std::size_t level) const {
    return level == 0 ? outer.keys : levels[level - 1].keys;
  }
  const Relation& innermost() const {
    const Relation* at = &outer.relation;
    for (const Level& level : levels) at = field_of(*at, level.field, true).rows;
    return *at;
  }
};

/// Of `path`'s rows, kept.
Relation relation_of(std::string name, const Path& path) {
  Relation made = path.innermost();
  made.name = std::move(name);
  made.listed_as.clear();
  std::vector<Field> fields;
  const Relation* at = &path.outer.relation;
  for (const char* key : path.outer.keys) fields.push_back(field_of(*at, key, false));
  for (const Level& level : path.levels) {
    at = field_of(*at, level.field, true).rows;
    for (const char* key : level.keys) fields.push_back(field_of(*at, key, false));
  }
  for (const Field& field : at->fields)
    if (field.type != answers::Type::kRows) fields.push_back(field);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i].put = [i](const void* row, answers::Sink& sink) {
      answers::put_value(sink, (*static_cast<const Values*>(row))[i]);
    };
    fields[i].look = {};
  }
  made.fields = std::move(fields);
  return made;
}

/// Adds the rows within `row`, which `above` stands before. `level`: how many levels further in they are.
void add_rows(const Path& path, std::size_t level, const Relation& relation, const void* row, Values above,
              std::deque<Values>& rows) {
  Keeper keeper(above);
  if (level == path.levels.size()) {
    for (const Field& field : relation.fields)
      if (field.type != answers::Type::kRows) keeper.take(field, row);
    rows.push_back(std::move(above));
    return;
  }
  for (const char* key : path.keys(level)) keeper.take(field_of(relation, key, false), row);
  const Field& field = field_of(relation, path.levels[level].field, true);
  field.each(row, [&](const void* inner) { add_rows(path, level + 1, *field.rows, inner, above, rows); });
}

}  // namespace

Table within(std::string name, const Outer& outer, std::vector<Level> levels) {
  const auto path = std::make_shared<const Path>(Path{outer, std::move(levels)});
  Table table;
  table.owned = std::make_shared<const Relation>(relation_of(std::move(name), *path));
  table.relation = table.owned.get();
  table.gatherer = outer.gatherer;
  table.list = [path](std::shared_ptr<const Gatherer> of) -> std::unique_ptr<List> {
    std::deque<Values> rows;
    path->outer.each(*of, [&](const void* row) { add_rows(*path, 0, path->outer.relation, row, {}, rows); });
    auto list = std::make_unique<ListOf<Values>>(std::move(of));
    list->rows.assign(std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
    return list;
  };
  return table;
}

}  // namespace karst::sql
