// SPDX-License-Identifier: MIT
#include "write/trace_writer.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "format/trace.h"
#include "write/file_chunks.h"
#include "write/output_file.h"

namespace karst::writing {
namespace {

using format::ChunkType;

constexpr std::size_t kBlocksTarget = std::size_t{1} << 20;  // a cut file loses at most about this much
constexpr std::size_t kMaxSource = format::kMaxChunkSize - (std::size_t{1} << 20);

}  // namespace

TraceWriter::TraceWriter(std::unique_ptr<FileChunks> chunks) : chunks_(std::move(chunks)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Result<TraceWriter> TraceWriter::create(const std::filesystem::path& path) {
  auto file = OutputFile::create(path);
  if (!file) return file.error();
  return TraceWriter(std::make_unique<FileChunks>(std::move(*file)));
}

Result<TraceWriter> TraceWriter::create_numbered(const std::string& stem) {
  auto file = OutputFile::create_numbered(stem);
  if (!file) return file.error();
  return TraceWriter(std::make_unique<FileChunks>(std::move(*file)));
}

TraceWriter TraceWriter::to_memory(std::vector<std::byte>& out) {
  return TraceWriter(std::make_unique<FileChunks>(OutputFile::to_memory(out)));
}

void TraceWriter::add_chunk(ChunkType type, std::span<const std::byte> payload) {
  chunks_->flush_pending();
  chunks_->write_chunk(type, payload, type != ChunkType::kBlocks && type != ChunkType::kPacked);
}

void TraceWriter::count_events(std::uint64_t events) { chunks_->events += events; }
void TraceWriter::mark_resolved() { chunks_->resolved = true; }

void TraceWriter::add_block(std::uint32_t process, std::uint32_t thread, std::uint64_t sequence, std::uint64_t ticks,
                            std::span<const format::Event> events, std::uint32_t blocks) {
  if (chunks_->packs && events.size() <= format::kMaxPackedEvents) {
    chunks_->events += events.size();
    chunks_->packs->add({process, thread, sequence, blocks, ticks}, events);
    return;
  }
  const std::size_t size = sizeof(format::BlockRecord) + events.size_bytes();
  if (size > format::kMaxChunkSize - sizeof(format::BlocksHeader)) {
    chunks_->misuse = fmt::format("a block of {} events is longer than the format allows", events.size());
    return;
  }
  chunks_->flush_sources();
  auto& out = chunks_->blocks;
  if (chunks_->blocks_header.count != 0 &&
      (chunks_->blocks_header.process != process || out.size() + size > kBlocksTarget)) {
    chunks_->flush_blocks();
  }
  if (out.empty()) out.resize(sizeof(format::BlocksHeader));
  chunks_->blocks_header.process = process;
  ++chunks_->blocks_header.count;
  const format::BlockRecord record{thread, static_cast<std::uint32_t>(events.size()), sequence, ticks};
  put(out, bytes_of(record));
  put(out, std::as_bytes(events));
  chunks_->events += events.size();
  chunks_->events_in_blocks += events.size();
}

void TraceWriter::pack_events(Placed placed) {
  if (chunks_->packs) return;
  chunks_->placed = std::move(placed);
  chunks_->pack();
}

bool TraceWriter::add_source(std::string_view path, std::string_view text) {
  path = path.substr(0, kMaxText);
  if (path.size() + text.size() > kMaxSource) return false;
  chunks_->flush_blocks();
  auto& heap = chunks_->source_heap;
  if (!heap.empty() && heap.size() + path.size() + text.size() > kTableTarget) chunks_->flush_sources();
  format::SourceRecord record{};
  record.path = {static_cast<std::uint32_t>(heap.size()), static_cast<std::uint32_t>(path.size())};
  heap.append(path);
  record.text = {static_cast<std::uint32_t>(heap.size()), static_cast<std::uint32_t>(text.size())};
  heap.append(text);
  chunks_->source_records.push_back(record);
  return true;
}

std::uint64_t TraceWriter::size() const {
  return chunks_->file.size() + chunks_->blocks.size() + chunks_->source_heap.size() +
         chunks_->source_records.size() * sizeof(format::SourceRecord);
}

bool TraceWriter::failed() const { return chunks_->file.failed(); }

Descriptor TraceWriter::duplicate() const { return chunks_->file.duplicate(); }

const std::filesystem::path& TraceWriter::path() const { return chunks_->file.path(); }

Status TraceWriter::grow() {
  const format::FileHeader header = chunks_->file_header(true);
  flush();
  return chunks_->file.grow(bytes_of(header));
}

bool TraceWriter::grows() const { return chunks_->file.grows(); }

void TraceWriter::flush() {
  if (chunks_->packs) chunks_->packs->flush();
  chunks_->flush_pending();
  chunks_->file.flush();
  if (!chunks_->file.failed()) chunks_->ends = {{chunks_->file.size(), chunks_->chunks, chunks_->events_in_chunks}};
}

std::string TraceWriter::cut_back() {
  auto& ends = chunks_->ends;
  while (ends.size() > 1 && ends.back().at > chunks_->file.written()) ends.pop_back();
  std::string why = chunks_->file.cut_back(ends.back().at);
  if (why.empty()) return why;
  if (chunks_->packs) chunks_->pack();  // what waits is lost as well
  chunks_->blocks.clear();
  chunks_->blocks_header = {};
  chunks_->events_in_blocks = 0;
  chunks_->chunks = ends.back().chunks;
  chunks_->events = chunks_->events_in_chunks = ends.back().events;
  return why;
}

Status TraceWriter::keep_events() {
  if (chunks_->packs) chunks_->packs->flush();
  chunks_->flush_pending();
  const std::uint64_t end_at = chunks_->file.size();
  chunks_->write_end();
  if (!chunks_->misuse.empty()) return Error{chunks_->misuse};
  const format::FileHeader header = chunks_->file_header();
  return chunks_->file.publish(bytes_of(header), end_at);
}

Status TraceWriter::finish() {
  if (chunks_->packs) chunks_->packs->flush();
  chunks_->flush_pending();
  chunks_->write_end();
  if (!chunks_->misuse.empty()) return Error{chunks_->misuse};
  const format::FileHeader header = chunks_->file_header();
  return chunks_->file.commit(bytes_of(header));
}

}  // namespace karst::writing
