// SPDX-License-Identifier: MIT
// karst export --to sqlite, csv and parquet: all tables of a trace.
#pragma once
#include <span>
#include <string>

#include "base/result.h"
#include "cli/input/trace_input.h"
#include "sql/scan.h"

namespace karst::cli {

struct TableFormat {
  const char* name;
  const char* description;
  Status (*write)(const sql::Source& source, const std::string& output);
};
std::span<const TableFormat> table_formats();
/// Null: there is none of that name.
const TableFormat* find_table_format(const std::string& name);

int export_tables(const TableFormat& format, const InputOptions& input, const std::string& output);

}  // namespace karst::cli
