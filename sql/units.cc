// SPDX-License-Identifier: MIT
#include "sql/units.h"

#include <map>
#include <string>
#include <string_view>

#include "sql/columns.h"
#include "sql/tables.h"

namespace karst::sql {
namespace {

constexpr const char* kNone = "";

bool ends_as(std::string_view name, std::string_view unit) {
  if (!name.ends_with(unit)) return false;
  return name.size() == unit.size() || name[name.size() - unit.size() - 1] == '_';
}

/// By name; those that tables do not agree on have none.
std::map<std::string, const char*, std::less<>> declared() {
  std::map<std::string, const char*, std::less<>> units;
  for (const Table& table : tables())
    for (const Column& column : columns_of(*table.relation, false)) {
      const char* const unit = unit_of(table.relation->fields[column.field].type);
      const auto [at, fresh] = units.try_emplace(column.name, unit);
      if (!fresh && at->second != std::string_view(unit)) at->second = kNone;
    }
  return units;
}

}  // namespace

const char* unit_of(answers::Type type) {
  switch (type) {
    case answers::Type::kTime:
      return "moment";
    case answers::Type::kDuration:
      return "ns";
    case answers::Type::kBytes:
      return "bytes";
    case answers::Type::kShare:
      return "share";
    default:
      return kNone;
  }
}

const char* unit_of_column(std::string_view name) {
  static const auto units = declared();
  if (const auto at = units.find(name); at != units.end() && *at->second != '\0') return at->second;
  return ends_as(name, "ns") ? "ns" : ends_as(name, "bytes") ? "bytes" : kNone;
}

}  // namespace karst::sql
