// SPDX-License-Identifier: MIT
// The chunks of one file, as TraceWriter has them written: those that are done, and those that are being filled. Also
// what a chunk with a table is made of. For trace_writer.cc and trace_tables.cc alone.
#pragma once
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/trace.h"
#include "write/output_file.h"
#include "write/packs.h"
#include "write/trace_writer.h"

namespace karst::writing {

inline constexpr std::size_t kTableTarget = std::size_t{16} << 20;  // bounds what a reader decodes at once
inline constexpr std::size_t kMaxText = std::size_t{8} << 20;       // longer names are cut; far above any real one

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

inline void put(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

struct TraceWriter::FileChunks {
  explicit FileChunks(OutputFile output) : file(std::move(output)) {
    context = ZSTD_createCCtx();
    const format::FileHeader space{};
    file.append(bytes_of(space));
  }
  FileChunks(const FileChunks&) = delete;
  FileChunks& operator=(const FileChunks&) = delete;
  ~FileChunks() { ZSTD_freeCCtx(context); }

  void write_chunk(format::ChunkType type, std::span<const std::byte> payload, bool compress);
  void write_chunk(format::ChunkType type, format::Encoding encoding, std::span<const std::byte> stored,
                   std::uint64_t raw_size);
  void write_end();
  format::FileHeader file_header(bool growing = false) const;
  void pack();
  void flush_blocks();
  void flush_sources();
  void flush_pending() {
    flush_blocks();
    flush_sources();
  }

  OutputFile file;
  ZSTD_CCtx* context = nullptr;
  std::vector<std::byte> compressed;
  std::uint64_t chunks = 0;
  std::uint64_t events = 0;
  bool resolved = false;
  std::string misuse;

  // The BLKS chunk that is being filled.
  std::vector<std::byte> blocks;
  format::BlocksHeader blocks_header{};
  std::uint64_t events_in_blocks = 0;

  std::unique_ptr<Packs> packs;  // PACK chunks that are being filled; null: events are not packed
  Placed placed;                 // may be empty

  // Of a file that grows: chunks since the last flush, and the one before them.
  struct ChunkEnd {
    std::uint64_t at = sizeof(format::FileHeader);
    std::uint64_t chunks = 0;
    std::uint64_t events = 0;  // up to it
  };
  std::vector<ChunkEnd> ends{{}};
  std::uint64_t events_in_chunks = 0;

  // The SRCF chunk that is being filled.
  std::vector<format::SourceRecord> source_records;
  std::string source_heap;
};

/// Collects the records and the heap of one table and hands them on as chunks.
template <typename Record, typename Sink>
class Table {
 public:
  Table(format::ChunkType type, std::uint32_t process, bool compress, Sink sink)
      : type_(type), process_(process), compress_(compress), sink_(std::move(sink)) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  /// May throw when memory is out, as add() may; what an exception leaves behind is not written.
  ~Table() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) flush();
  }

  format::StringRef text(std::string_view value) {
    value = value.substr(0, kMaxText);
    const format::StringRef ref{static_cast<std::uint32_t>(heap_.size()), static_cast<std::uint32_t>(value.size())};
    heap_.append(value);
    return ref;
  }
  /// For texts that many records share.
  format::StringRef shared_text(const std::string& value) {
    const auto [at, fresh] = shared_.try_emplace(value);
    if (fresh) at->second = text(value);
    return at->second;
  }
  void add(const Record& record) {
    add_unsplit(record);
    split();
  }
  /// Keeps the record in the chunk of the one before it.
  void add_unsplit(const Record& record) { records_.push_back(record); }
  /// What comes next may begin another chunk.
  void split() {
    if (records_.size() * sizeof(Record) + heap_.size() >= kTableTarget) flush();
  }

 private:
  void flush() {
    if (records_.empty()) return;
    const format::TableHeader header{process_, sizeof(Record), static_cast<std::uint32_t>(records_.size()),
                                     static_cast<std::uint32_t>(heap_.size())};
    std::vector<std::byte> payload;
    payload.reserve(sizeof header + records_.size() * sizeof(Record) + heap_.size());
    put(payload, bytes_of(header));
    put(payload, std::as_bytes(std::span(records_)));
    put(payload, std::as_bytes(std::span(heap_)));
    sink_(type_, payload, compress_);
    records_.clear();
    heap_.clear();
    shared_.clear();
  }

  const int exceptions_ = std::uncaught_exceptions();
  format::ChunkType type_;
  std::uint32_t process_;
  bool compress_;
  Sink sink_;
  std::vector<Record> records_;
  std::string heap_;
  std::unordered_map<std::string, format::StringRef> shared_;
};

/// A table of `process`, behind what is being filled.
template <typename Record, typename Chunks>
auto make_table(Chunks& chunks, format::ChunkType type, std::uint32_t process, bool compress) {
  chunks.flush_pending();
  const auto sink = [&chunks](format::ChunkType chunk, std::span<const std::byte> payload, bool squeeze) {
    chunks.write_chunk(chunk, payload, squeeze);
  };
  return Table<Record, decltype(sink)>(type, process, compress, sink);
}

}  // namespace karst::writing
