// SPDX-License-Identifier: MIT
// Typed views of table payloads (TableHeader, records, heap), with every reference checked.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "format/trace.h"
#include "reader/chunks.h"

namespace karst::reader {

/// Bytes of a record as the first version had it: what it had not is read as zero.
template <typename Record>
inline constexpr std::size_t kLeastRecord = sizeof(Record);
template <>
inline constexpr std::size_t kLeastRecord<format::SymbolRecord> = offsetof(format::SymbolRecord, values);
template <>
inline constexpr std::size_t kLeastRecord<format::CostRecord> = offsetof(format::CostRecord, off_by);

/// A view of one table whose sizes were checked. Records may be longer than Record, and shorter than that of today.
template <typename Record>
class Table {
 public:
  /// Nothing when the header and the payload's size do not agree.
  static std::optional<Table> parse(std::span<const std::byte> payload) {
    if (payload.size() < sizeof(format::TableHeader)) return std::nullopt;
    Table table;
    table.header_ = read_at<format::TableHeader>(payload, 0);
    const auto& header = table.header_;
    if (header.record_size < kLeastRecord<Record>) return std::nullopt;
    const std::uint64_t records = std::uint64_t{header.record_size} * header.count;
    if (records + header.heap_size != payload.size() - sizeof(format::TableHeader)) return std::nullopt;
    table.records_ = payload.subspan(sizeof(format::TableHeader), records);
    table.heap_ = payload.subspan(sizeof(format::TableHeader) + records);
    return table;
  }

  std::uint32_t process() const { return header_.process; }
  std::uint32_t size() const { return header_.count; }
  Record operator[](std::size_t i) const {
    if constexpr (kLeastRecord<Record> < sizeof(Record)) {
      Record record{};
      const std::size_t known = std::min<std::size_t>(header_.record_size, sizeof record);
      std::memcpy(&record, records_.data() + i * header_.record_size, known);
      return record;
    }
    return read_at<Record>(records_, i * header_.record_size);
  }
  /// Nothing when the reference leaves the heap.
  std::optional<std::string_view> text(format::StringRef ref) const {
    if (std::uint64_t{ref.offset} + ref.size > heap_.size()) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(heap_.data()) + ref.offset, ref.size);
  }

 private:
  format::TableHeader header_{};
  std::span<const std::byte> records_;
  std::span<const std::byte> heap_;
};

}  // namespace karst::reader
