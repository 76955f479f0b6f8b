// SPDX-License-Identifier: MIT
#include "sql/table_function.h"

#include <exception>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace karst::sql {

/// What all threads of a query share.
struct TraceTable::Query {
  TraceTable& table;
  std::vector<const Column*> columns;  ///< that it takes, in the chunk's order
  Fields fields;
  std::vector<std::unique_ptr<Scan>> scans;  ///< by source
};

/// Of one thread.
struct TraceTable::Worker {
  std::optional<ChunkWriter> writer;
  std::size_t source = 0;
  std::unique_ptr<Piece> piece;
};

namespace {

constexpr const char* kFunction = "karst_";  // before a table's name

/// DuckDB does not know our exceptions: `failed` is told in words.
template <typename Do, typename Failed>
void guarded(Do action, Failed failed) {
  try {
    action();
  } catch (const std::exception& error) {
    failed(error.what());
  }
}

template <typename T>
void destroy(void* of) {
  delete static_cast<T*>(of);
}

/// Callbacks of the library have no other way to its functions.
const duckdb::Api* the_api = nullptr;

constexpr const char* kTid = "tid";
constexpr const char* kThread = "thread";

/// Calls `use` with what a query gave for a parameter, if it did; NULL is as good as nothing.
template <typename Use>
void with_parameter(duckdb::Handle info, const char* name, Use use) {
  duckdb::Handle value = the_api->bind_get_named_parameter(info, name);
  if (value == nullptr) return;
  if (!the_api->is_null_value(value)) use(value);
  the_api->destroy_value(&value);
}

ThreadChoice threads_of(duckdb::Handle info) {
  ThreadChoice threads;
  with_parameter(info, kTid, [&](duckdb::Handle value) { threads.tid = the_api->get_int64(value); });
  with_parameter(info, kThread, [&](duckdb::Handle value) {
    char* const name = the_api->get_varchar(value);
    threads.name = name == nullptr ? "" : name;
    the_api->free(name);
  });
  return threads;
}

}  // namespace

TraceTable::TraceTable(const duckdb::Api& api, const Names& names, std::span<const Source> sources,
                       std::deque<Gathered>& gathered, const Table& table)
    : api_(api),
      names_(names),
      sources_(sources),
      gathered_(gathered),
      table_(table),
      columns_(columns_of(*table.relation, sources.size() > 1)),
      lists_(sources.size()) {
  the_api = &api;
}

std::unique_ptr<Scan> TraceTable::scan(std::size_t source, const Fields& fields, const ThreadChoice& threads) {
  if (table_.scan != nullptr) return table_.scan(gathered_[source], fields, threads);
  const std::scoped_lock lock(mutex_);
  if (lists_[source] == nullptr) lists_[source] = gathered_[source].list(table_);
  return scan_of(*lists_[source]);
}

void TraceTable::bind(duckdb::Handle info) {
  const auto& table = *static_cast<TraceTable*>(the_api->bind_get_extra_info(info));
  for (const Column& column : table.columns_) {
    duckdb::Handle type = the_api->create_logical_type(column.type);
    the_api->bind_add_result_column(info, column.name.c_str(), type);
    the_api->destroy_logical_type(&type);
  }
  the_api->bind_set_cardinality(info, table.expected_rows(), false);
  the_api->bind_set_bind_data(info, new ThreadChoice(threads_of(info)), destroy<ThreadChoice>);
}

std::uint64_t TraceTable::expected_rows() const {
  constexpr std::uint64_t kOfList = 1000;  // nobody knows before it is made
  std::uint64_t rows = 0;
  for (const Source& source : sources_) rows += table_.scan != nullptr ? source.trace.event_count() / 2 : kOfList;
  return rows;
}

void TraceTable::init(duckdb::Handle info) {
  guarded(
      [&] {
        auto& table = *static_cast<TraceTable*>(the_api->init_get_extra_info(info));
        auto query = std::make_unique<Query>(Query{table, {}, {}, {}});
        query->fields.resize(table.table_.relation->fields.size());
        for (std::uint64_t at = 0; at < the_api->init_get_column_count(info); ++at) {
          const std::uint64_t asked = the_api->init_get_column_index(info, at);
          if (asked >= table.columns_.size()) throw std::runtime_error("DuckDB asks for a column that there is not");
          const Column& column = table.columns_[asked];
          query->columns.push_back(&column);
          if (column.part != Column::Part::kTrace) query->fields[column.field] = true;
        }
        const auto& threads = *static_cast<const ThreadChoice*>(the_api->init_get_bind_data(info));
        for (std::size_t source = 0; source < table.sources_.size(); ++source)
          query->scans.push_back(table.scan(source, query->fields, threads));
        the_api->init_set_max_threads(info, std::max(1U, std::thread::hardware_concurrency()));
        the_api->init_set_init_data(info, query.release(), destroy<Query>);
      },
      [&](const char* why) { the_api->init_set_error(info, why); });
}

void TraceTable::init_worker(duckdb::Handle info) { the_api->init_set_init_data(info, new Worker, destroy<Worker>); }

void TraceTable::fill(duckdb::Handle info, duckdb::Handle chunk) {
  guarded(
      [&] {
        const Query& query = *static_cast<Query*>(the_api->function_get_init_data(info));
        Worker& worker = *static_cast<Worker*>(the_api->function_get_local_init_data(info));
        const TraceTable& table = query.table;
        if (!worker.writer)
          worker.writer.emplace(table.api_, table.names_, table.sources_, *table.table_.relation, query.columns);
        ChunkWriter& writer = *worker.writer;
        const std::uint64_t most = the_api->vector_size();
        writer.begin(chunk, most);
        while (writer.size() < most && worker.source < query.scans.size()) {
          if (worker.piece == nullptr) worker.piece = query.scans[worker.source]->next();
          if (worker.piece == nullptr) {
            ++worker.source;
            continue;
          }
          const void* const row = worker.piece->next();
          if (row == nullptr)
            worker.piece.reset();
          else
            writer.row(worker.source, row);
        }
        writer.end();
      },
      [&](const char* why) { the_api->function_set_error(info, why); });
}

Status TraceTable::add_function(duckdb::Handle connection, const std::string& name) {
  duckdb::Handle function = api_.create_table_function();
  api_.table_function_set_name(function, name.c_str());
  api_.table_function_set_extra_info(function, this, nullptr);
  api_.table_function_set_bind(function, bind);
  api_.table_function_set_init(function, init);
  api_.table_function_set_local_init(function, init_worker);
  api_.table_function_set_function(function, fill);
  api_.table_function_supports_projection_pushdown(function, true);
  if (table_.scan != nullptr) {
    for (const auto& [parameter, type] : {std::pair(kTid, duckdb::kBigInt), std::pair(kThread, duckdb::kVarchar)}) {
      duckdb::Handle made = api_.create_logical_type(type);
      api_.table_function_add_named_parameter(function, parameter, made);
      api_.destroy_logical_type(&made);
    }
  }
  const duckdb::State added = api_.register_table_function(connection, function);
  api_.destroy_table_function(&function);
  if (added != duckdb::kSuccess) return Error{"DuckDB does not take the table " + name};
  return Unit{};
}

Status TraceTable::add_to(duckdb::Handle connection) {
  const std::string& name = table_.relation->name;
  if (Status added = add_function(connection, kFunction + name); !added) return added;
  // A query may say of which threads: calls(tid := 4711).
  if (table_.scan != nullptr)
    if (Status added = add_function(connection, name); !added) return added;
  const std::string view = "CREATE VIEW " + name + " AS SELECT * FROM " + kFunction + name + "()";
  duckdb::Result result{};
  const duckdb::State made = api_.query(connection, view.c_str(), &result);
  const char* const why = made == duckdb::kSuccess ? nullptr : api_.result_error(&result);
  Status status = why == nullptr ? Status(Unit{}) : Error{"DuckDB does not take the table " + name + ": " + why};
  api_.destroy_result(&result);
  return status;
}

}  // namespace karst::sql
