// SPDX-License-Identifier: MIT
// Columns of a table in DuckDB's vectors, made of a relation's fields.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answers/relation.h"
#include "sql/api.h"
#include "sql/scan.h"

namespace karst::sql {

/// A column: a field, or a part of one.
struct Column {
  enum class Part : std::uint8_t {
    kWhole,
    kThreadId,
    kThreadName,
    kTrace,  ///< no field: the name of the trace that the row is of
  };
  std::string name;
  duckdb::Type type;
  Part part;
  std::size_t field;  ///< place in the relation
  const char* sentence;
};

/// In the order of fields, by the names that CSV and JSON have; rows within rows have no column. With `of_trace` the
/// first one says of which trace a row is.
std::vector<Column> columns_of(const answers::Relation& relation, bool of_trace);
/// As SQL calls it.
const char* type_name(duckdb::Type type);

/// Names that rows repeat, once each in one vector: of functions, of threads, of traces. A column of them is a
/// selection of its rows. From several threads at once.
class Names {
 public:
  Names(const duckdb::Api& api, std::span<const Source> sources);
  ~Names();
  Names(Names&&) = delete;

  duckdb::Handle vector() const { return vector_; }
  /// Places in the vector; 0 has nothing.
  std::uint32_t function(std::size_t source, answers::FunctionRef ref) const;
  std::uint32_t thread(const reader::Thread* thread) const;
  std::uint32_t trace(std::size_t source) const { return traces_[source]; }

 private:
  std::uint32_t place(std::string name);

  const duckdb::Api& api_;
  duckdb::Handle vector_ = nullptr;
  std::uint32_t not_known_ = 0;
  std::vector<std::string> texts_{1};
  std::unordered_map<std::string, std::uint32_t> places_;
  std::vector<std::vector<std::vector<std::uint32_t>>> functions_;  // by source, process and id
  std::unordered_map<const reader::Thread*, std::uint32_t> threads_;
  std::vector<std::uint32_t> traces_;
};

/// Writes rows into a chunk. Of one thread.
class ChunkWriter final : private answers::Sink {
 public:
  /// Column i of a chunk is columns[i]; all outlive it.
  ChunkWriter(const duckdb::Api& api, const Names& names, std::span<const Source> sources,
              const answers::Relation& relation, const std::vector<const Column*>& columns);
  ~ChunkWriter();
  ChunkWriter(ChunkWriter&&) = delete;

  /// For each chunk: begin(), rows of which there are `most` or fewer, end().
  void begin(duckdb::Handle chunk, std::uint64_t most);
  void row(std::size_t source, const void* row);
  std::uint64_t size() const { return size_; }
  void end();

 private:
  struct Place {
    const Column* column;
    duckdb::Handle vector = nullptr;
    void* data = nullptr;
    std::uint64_t* validity = nullptr;  // null until something is missing
    duckdb::Handle selection = nullptr;
    std::uint32_t* selected = nullptr;
  };

  bool is_selected(const Column& column) const;
  void set_none(Place& place);
  void set_name(Place& place, std::uint32_t name) { place.selected[size_] = name; }
  template <typename T>
  void set(T value);

  void none() override;
  void flag(bool flag) override;
  void whole(std::uint64_t number) override;
  void number(std::int64_t number) override;
  void real(double number) override;
  void text(std::string_view text) override;
  void function(answers::FunctionRef ref) override;
  void thread(answers::ThreadRef ref) override;
  void process(answers::ProcessRef ref) override;

  const duckdb::Api& api_;
  const Names& names_;
  std::span<const Source> sources_;
  const answers::Relation& relation_;
  std::vector<Place> places_;
  duckdb::Handle chunk_ = nullptr;
  Place* at_ = nullptr;  // that is being written
  std::size_t source_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace karst::sql
