// SPDX-License-Identifier: MIT
#include "sql/scan.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "sql/gathered.h"

namespace karst::sql {
namespace {

constexpr std::size_t kPieceRows = 8192;

class ListPiece final : public Piece {
 public:
  ListPiece(const List& list, std::size_t first, std::size_t end) : list_(list), next_(first), end_(end) {}
  const void* next() override { return next_ == end_ ? nullptr : list_.at(next_++); }

 private:
  const List& list_;
  std::size_t next_, end_;
};

class ListScan final : public Scan {
 public:
  explicit ListScan(const List& list) : list_(list) {}
  std::unique_ptr<Piece> next() override {
    const std::size_t first = next_.fetch_add(kPieceRows);
    if (first >= list_.size()) return nullptr;
    return std::make_unique<ListPiece>(list_, first, std::min(list_.size(), first + kPieceRows));
  }

 private:
  const List& list_;
  std::atomic<std::size_t> next_{0};
};

}  // namespace

reader::Calls Source::rebuild(const reader::Thread& thread, reader::Calls used) const {
  reader::Calls calls = reader::rebuild_calls(trace, thread, work->limits(), std::move(used));
  work->check();  // those of a reading that was stopped are not whole
  return calls;
}

std::uint64_t Source::events_of(const reader::Thread& thread) const {
  std::uint64_t events = 0;
  for (const reader::StoredBlock& block : trace.blocks(thread)) events += block.size();
  return events;
}

std::uint64_t Source::events() const {
  std::uint64_t events = 0;
  for (const reader::Thread* thread : threads) events += events_of(*thread);
  return events;
}

void each_row(const Table& table, Gathered& gathered, const std::function<bool(const void* row)>& use) {
  const std::unique_ptr<List> list = table.list ? gathered.list(table) : nullptr;
  const std::unique_ptr<Scan> scan =
      list != nullptr ? scan_of(*list) : table.scan(gathered, Fields(table.relation->fields.size(), true), {});
  while (const std::unique_ptr<Piece> piece = scan->next())
    while (const void* const row = piece->next())
      if (!use(row)) return;
}

std::unique_ptr<Scan> scan_of(const List& list) { return std::make_unique<ListScan>(list); }

}  // namespace karst::sql
