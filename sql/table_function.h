// SPDX-License-Identifier: MIT
// A table as DuckDB asks for its rows: a table function that writes the columns which a query takes, from several
// threads at once.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "sql/api.h"
#include "sql/columns.h"
#include "sql/gathered.h"
#include "sql/scan.h"

namespace karst::sql {

/// A table of some traces. Its lists are made when they are first asked for, and kept. Outlives all queries.
class TraceTable {
 public:
  TraceTable(const duckdb::Api& api, const Names& names, std::span<const Source> sources,
             std::deque<Gathered>& gathered, const Table& table);

  const std::vector<Column>& columns() const { return columns_; }
  /// Its name in SQL is the relation's.
  Status add_to(duckdb::Handle connection);

 private:
  struct Query;
  struct Worker;
  static void bind(duckdb::Handle info);
  static void init(duckdb::Handle info);
  static void init_worker(duckdb::Handle info);
  static void fill(duckdb::Handle info, duckdb::Handle chunk);

  Status add_function(duckdb::Handle connection, const std::string& name);
  /// About how many, for the order of joins.
  std::uint64_t expected_rows() const;
  std::unique_ptr<Scan> scan(std::size_t source, const Fields& fields, const ThreadChoice& threads);

  const duckdb::Api& api_;
  const Names& names_;
  std::span<const Source> sources_;
  std::deque<Gathered>& gathered_;  // by source
  const Table& table_;
  std::vector<Column> columns_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<List>> lists_;  // by source; null until it is asked for
};

}  // namespace karst::sql
