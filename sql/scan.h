// SPDX-License-Identifier: MIT
// Rows of a relation as a query takes them: in pieces, which several threads go through at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answers/relation.h"
#include "reader/trace.h"
#include "sql/work.h"

namespace karst::sql {

/// A trace that is asked about, and its calls. Outlives what is made of it.
struct Source {
  const reader::Trace& trace;
  std::vector<const reader::Thread*> threads;
  /// Leaves those of a thread's calls, which are all that it recorded, that are asked about. From several threads at
  /// once.
  std::function<void(const reader::Thread& thread, reader::Calls& calls)> choose;
  std::uint32_t first_thread = 0;  ///< threads of sources before it
  std::shared_ptr<Work> work = std::make_shared<Work>();

  /// A thread's calls, all that it recorded. Throws where the work shall end.
  reader::Calls rebuild(const reader::Thread& thread, reader::Calls used = {}) const;
  /// Of a thread, or of all threads.
  std::uint64_t events_of(const reader::Thread& thread) const;
  std::uint64_t events() const;
};

/// Goes through some rows of a relation. Of one thread.
class Piece {
 public:
  virtual ~Piece() = default;
  /// Valid until the next call. Null: these were all.
  virtual const void* next() = 0;
};

/// Which fields of a relation a query takes, by their places in it.
using Fields = std::vector<bool>;

/// Of which threads a query takes rows; what is not said leaves none out. Others are not rebuilt.
struct ThreadChoice {
  std::optional<std::int64_t> tid;
  std::optional<std::string> name;

  bool takes(const reader::Thread& thread) const {
    return (!tid || *tid == static_cast<std::int64_t>(thread.tid)) && (!name || *name == thread.name);
  }
  bool takes_all() const { return !tid && !name; }
};

/// All rows of a source. From several threads at once.
class Scan {
 public:
  virtual ~Scan() = default;
  /// The next rows that nobody else has. Null: there are none left.
  virtual std::unique_ptr<Piece> next() = 0;
};

/// Rows that are made at once and kept: all but calls, of which there may be too many.
class List {
 public:
  virtual ~List() = default;
  virtual std::size_t size() const = 0;
  virtual const void* at(std::size_t row) const = 0;
};

class Gatherer;  // sql/gathered.h
class Gathered;

/// Rows, and what they are views of.
template <typename Row>
class ListOf final : public List {
 public:
  explicit ListOf(std::shared_ptr<const Gatherer> of) : of_(std::move(of)) {}
  std::size_t size() const override { return rows.size(); }
  const void* at(std::size_t row) const override { return &rows[row]; }

  std::vector<Row> rows;

 private:
  std::shared_ptr<const Gatherer> of_;
};

using MakeGatherer = std::unique_ptr<Gatherer> (*)(const Source& source);

/// A relation that can be asked, and how to come by its rows: by a list, of what a gatherer has, or by a scan.
struct Table {
  const answers::Relation* relation;
  MakeGatherer gatherer = nullptr;
  std::function<std::unique_ptr<List>(std::shared_ptr<const Gatherer> of)> list = nullptr;
  std::unique_ptr<Scan> (*scan)(Gathered& gathered, const Fields& fields, const ThreadChoice& threads) = nullptr;
  std::shared_ptr<const answers::Relation> owned = nullptr;  ///< `relation`, where it is of this table alone
};

/// Gives all rows of a table, one after the other, each valid until `use` returns. It returns false to stop.
void each_row(const Table& table, Gathered& gathered, const std::function<bool(const void* row)>& use);

/// A scan of a list, some thousand rows a piece.
std::unique_ptr<Scan> scan_of(const List& list);

}  // namespace karst::sql
