// SPDX-License-Identifier: MIT
#include "cli/commands/query_schema.h"

#include <fmt/format.h>

#include <string>

#include "base/text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "sql/columns.h"
#include "sql/tables.h"

namespace karst::cli {
namespace {

void print_one(Screen& screen, const sql::Table& table) {
  const std::string head = fmt::format("{}: {}", table.relation->name, table.relation->sentence);
  screen.output().append(screen.paint(Style::kStrong, wrap(head, screen.width(), 2)) + "\n");
  for (const sql::Column& column : sql::columns_of(*table.relation, false))
    screen.output().append(
        wrap(fmt::format("  {:<18} {:<8} {}", column.name, sql::type_name(column.type), column.sentence),
             screen.width(), 30) +
        "\n");
}

void print_macros(Screen& screen) {
  for (const sql::Derived& one : sql::derived())
    screen.output().append(wrap(fmt::format("{:<22} {}", one.name, one.sentence), screen.width(), 25) + "\n");
}

}  // namespace

void print_schema(Screen& screen) {
  for (const sql::Table& table : sql::tables()) {
    print_one(screen, table);
    screen.output().append("\n");
  }
  print_macros(screen);
}

void print_tables(Screen& screen) {
  for (const sql::Table& table : sql::tables())
    screen.output().append(
        wrap(fmt::format("{:<22} {}", table.relation->name, table.relation->sentence), screen.width(), 25) + "\n");
  print_macros(screen);
}

bool print_table(Screen& screen, std::string_view name) {
  for (const sql::Table& table : sql::tables()) {
    if (table.relation->name != name) continue;
    print_one(screen, table);
    return true;
  }
  return false;
}

}  // namespace karst::cli
