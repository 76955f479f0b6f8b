// SPDX-License-Identifier: MIT
#include "reader/chunks.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "format/checksum.h"
#include "format/chunk_types.h"

namespace karst::reader {
namespace {

using format::ChunkHeader;
using format::ChunkType;
using format::FileHeader;

bool starts_with(std::span<const std::byte> file, std::string_view text) {
  return file.size() >= text.size() && std::memcmp(file.data(), text.data(), text.size()) == 0;
}

// Names what people hand to a trace reader by mistake.
std::string_view guess_foreign(std::span<const std::byte> file) {
  if (starts_with(file,
                  "\x7f"
                  "ELF"))
    return "an ELF file (a program, library or core dump)";
  if (starts_with(file, "PERFILE2")) return "a perf.data file";
  if (starts_with(file, "Ftrace!")) return "an uftrace file";
  if (starts_with(file, "{") || starts_with(file, "[")) return "JSON text";
  if (starts_with(file, "\x28\xb5\x2f\xfd")) return "zstd-compressed data (decompress it first)";
  if (starts_with(file, "\x1f\x8b")) return "gzip-compressed data (decompress it first)";
  if (starts_with(file, "PK\x03\x04")) return "a zip archive";
  if (starts_with(file, "#!")) return "a script";
  return {};
}

std::optional<ChunkHeader> sound_header(std::span<const std::byte> file, std::uint64_t offset) {
  if (file.size() - offset < sizeof(ChunkHeader)) return std::nullopt;
  const auto header = read_at<ChunkHeader>(file, offset);
  if (format::crc32c(&header, offsetof(ChunkHeader, header_crc)) != header.header_crc) return std::nullopt;
  return header;
}

// Chunk types are four capital letters or digits, now and in later versions: a cheap test before the checksum.
bool may_be_type(std::uint32_t type) {
  for (int i = 0; i < 4; ++i, type >>= 8) {
    const std::uint32_t c = type & 0xff;
    if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) return false;
  }
  return true;
}

// The next sound chunk header at or after `offset`, in steps of 8; the file's size when there is none.
std::uint64_t resynchronise(std::span<const std::byte> file, std::uint64_t offset) {
  for (; file.size() - offset >= sizeof(ChunkHeader); offset += 8) {
    if (may_be_type(read_at<std::uint32_t>(file, offset)) && sound_header(file, offset)) return offset;
    if (file.size() - offset < 8) break;
  }
  return file.size();
}

// All zero when the header is damaged.
Result<FileHeader> check_file_header(std::span<const std::byte> file, const std::string& name, ProblemList& problems) {
  const std::size_t magic_part = std::min(file.size(), sizeof format::kFileMagic);
  if (file.empty()) return Error{fmt::format("cannot read the trace {}: it is empty; record it again", name)};
  if (std::memcmp(file.data(), format::kFileMagic, magic_part) != 0) {
    if (std::memcmp(file.data(), format::kFileMagic, std::min<std::size_t>(magic_part, 6)) == 0) {
      return Error{fmt::format(
          "cannot read the trace {}: its line ends were converted as if it were text; transfer it as binary", name)};
    }
    const auto guess = guess_foreign(file);
    return Error{guess.empty()
                     ? fmt::format("{} is not a Karst trace; record one with `karst run`", name)
                     : fmt::format("{} is not a Karst trace but {}; record one with `karst run`", name, guess)};
  }
  if (file.size() < sizeof(FileHeader)) {
    return Error{fmt::format("cannot read the trace {}: it was cut after {} bytes, inside its header; record it again",
                             name, file.size())};
  }
  const auto header = read_at<FileHeader>(file, 0);
  if (format::crc32c(&header, offsetof(FileHeader, crc)) != header.crc) {
    problems.add_place([] { return std::string("the file header is damaged; the chunks after it are read"); });
    return FileHeader{};
  }
  if (header.major > format::kMajorVersion) {
    return Error{
        fmt::format("cannot read the trace {}: it has format version {}.{}, this Karst reads up to {}.x; use "
                    "the Karst that wrote it or a newer one",
                    name, header.major, header.minor, format::kMajorVersion)};
  }
  if (header.major == 0 || header.header_size < sizeof(FileHeader) || header.header_size % 8 != 0) {
    return Error{
        fmt::format("cannot read the trace {}: its header is damaged (version {}.{}, header of {} bytes); "
                    "record it again",
                    name, header.major, header.minor, header.header_size)};
  }
  return header;
}

std::string skipped(const Chunk& chunk, std::string_view why) {
  return fmt::format("the {} chunk at byte {} {}; its {} bytes were skipped", chunk_name(chunk.type), chunk.offset, why,
                     chunk.stored.size());
}

// Why a chunk with a sound header cannot be used, beside its checksum; empty when it can.
std::string refusal(const Chunk& chunk, const ChunkHeader& header) {
  if (header.encoding > static_cast<std::uint32_t>(format::Encoding::kZstd)) {
    return fmt::format("has an unknown encoding ({})", header.encoding);
  }
  if (header.raw_size > format::kMaxChunkSize)
    return fmt::format("claims {} bytes, more than allowed", header.raw_size);
  if (chunk.encoding == format::Encoding::kRaw ? header.raw_size != header.stored_size
                                               : header.raw_size / format::kMaxExpansion > header.stored_size) {
    return fmt::format("has impossible sizes ({} stored, {} raw)", header.stored_size, header.raw_size);
  }
  return {};
}

constexpr std::string_view kDamaged = "is damaged (its checksum does not fit)";

bool fits(const Chunk& chunk, std::uint32_t crc) {
  return chunk.truncated || format::crc32c(chunk.stored.data(), chunk.stored.size()) == crc;
}

// Events are nearly all of a large file: below this their checksums are not worth a thread.
constexpr std::uint64_t kCheckApart = std::uint64_t{8} << 20;

// A chunk of events whose checksum is still to be looked at.
struct Unchecked {
  std::size_t chunk;  // of ChunkList::chunks
  std::uint32_t crc;
};

// Drops those that do not fit. What takes long is not the sum but bringing the pages in: on all processors.
void check_apart(std::span<const Unchecked> unchecked, ChunkList& list, ProblemList& problems) {
  std::vector<char> sound(list.chunks.size(), 1);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < unchecked.size(); i = next++) {
      const std::size_t chunk = unchecked[i].chunk;
      sound[chunk] = fits(list.chunks[chunk], unchecked[i].crc) ? 1 : 0;
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < std::thread::hardware_concurrency() && i < unchecked.size(); ++i) {
      try {
        others.emplace_back(work);
      } catch (const std::system_error&) {  // as many as there may be
        break;
      }
    }
    work();
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list.chunks.size(); ++i) {
    if (sound[i] != 0) {
      list.chunks[kept++] = list.chunks[i];
    } else {
      problems.add_place([&] { return skipped(list.chunks[i], kDamaged); });
    }
  }
  list.chunks.resize(kept);
}

}  // namespace

std::string_view chunk_name(ChunkType type) {
  const format::ChunkKind* kind = format::chunk_kind(type);
  return kind != nullptr ? kind->letters : "unknown";
}

Result<ChunkList> scan_chunks(std::span<const std::byte> file, const std::string& name, ProblemList& problems,
                              bool known_sound) {
  auto file_header = check_file_header(file, name, problems);
  if (!file_header) return file_header.error();
  ChunkList list;
  list.minor = file_header->minor;
  list.flags = file_header->flags;
  list.header_damaged = file_header->header_size == 0;
  list.growing = (list.flags & format::kFileGrowing) != 0;

  std::uint64_t offset = list.header_damaged ? sizeof(FileHeader) : file_header->header_size;
  std::vector<Unchecked> unchecked;
  std::uint64_t cut_at = file.size();  // where the readable part ends
  while (offset < file.size() && !list.ended) {
    const auto header = sound_header(file, offset);
    if (!header) {
      const std::uint64_t next = resynchronise(file, offset + std::min<std::uint64_t>(8, file.size() - offset));
      if (next == file.size() && file.size() - offset < sizeof(ChunkHeader)) {
        cut_at = offset;
      } else {
        problems.add_place([&] {
          return fmt::format("the chunk header at byte {} is damaged; {} bytes were skipped", offset, next - offset);
        });
      }
      offset = next;
      continue;
    }
    const std::uint64_t available = file.size() - offset - sizeof(ChunkHeader);
    Chunk chunk;
    chunk.type = static_cast<ChunkType>(header->type);
    chunk.encoding = static_cast<format::Encoding>(header->encoding);
    chunk.offset = offset;
    chunk.raw_size = header->raw_size;
    chunk.truncated = header->stored_size > available;
    chunk.stored = file.subspan(offset + sizeof(ChunkHeader), std::min(header->stored_size, available));
    const bool known = format::chunk_kind(chunk.type) != nullptr;
    if (chunk.truncated) cut_at = offset;
    // A cut table has lost its texts; of a cut BLKS chunk the events before the cut are whole.
    const bool usable_if_cut = chunk.type == ChunkType::kBlocks && chunk.encoding == format::Encoding::kRaw;
    if (known && (!chunk.truncated || usable_if_cut)) {
      const bool events = chunk.type == ChunkType::kBlocks || chunk.type == ChunkType::kPacked;
      const bool later = events && (known_sound || file.size() >= kCheckApart);
      std::string why = refusal(chunk, *header);
      if (why.empty() && !later && !fits(chunk, header->payload_crc)) why = kDamaged;
      if (why.empty() && later && !known_sound) unchecked.push_back({list.chunks.size(), header->payload_crc});
      if (!why.empty()) {
        problems.add_place([&] { return skipped(chunk, why); });
      } else if (chunk.type == ChunkType::kEnd) {
        if (chunk.stored.size() >= sizeof(format::EndRecord) && chunk.encoding == format::Encoding::kRaw) {
          list.end = read_at<format::EndRecord>(chunk.stored, 0);
          list.ended = true;
        } else {
          problems.add_place([&] { return fmt::format("the ENDT chunk at byte {} is too short", offset); });
        }
      } else {
        list.chunks.push_back(chunk);
      }
    }
    if (!list.ended) ++list.seen;
    // Both sums stay far below 2^64: the parts lie within the file.
    offset += sizeof(ChunkHeader) + (chunk.stored.size() + 7) / 8 * 8;
  }

  if (!unchecked.empty()) check_apart(unchecked, list, problems);

  if (list.seen == 0 && !list.ended && list.header_damaged) {
    return Error{fmt::format(
        "cannot read the trace {}: its header is damaged and no sound part follows; record it again", name)};
  }
  if (!list.ended) {
    problems.add_place([&] {
      if (list.growing)
        return fmt::format(
            "its recording goes on, or was ended by force: what was written by then is there, up to byte {}", cut_at);
      return fmt::format(
          "the file ends at byte {} without its end chunk: it was cut; what lies before byte {} was read", file.size(),
          cut_at);
    });
  } else {
    if (offset < file.size()) {
      problems.add_place([&] {
        return fmt::format("{} bytes after the end chunk at byte {} were ignored", file.size() - offset, offset);
      });
    }
    if (list.end.chunks != list.seen) {
      problems.add_place([&] {
        return fmt::format("the end chunk counts {} chunks before it, {} were found", list.end.chunks, list.seen);
      });
    }
  }
  return list;
}

Result<Payload> decode(const Chunk& chunk) {
  Payload payload;
  const bool stays = chunk.type == ChunkType::kBlocks || chunk.type == ChunkType::kPacked;
  if (chunk.encoding == format::Encoding::kRaw && stays) {
    payload.bytes = chunk.stored;
    return payload;
  }
  // The file may change meanwhile, and what is looked at twice is to be the same.
  auto stored = std::make_unique_for_overwrite<std::byte[]>(chunk.stored.size());
  std::copy(chunk.stored.begin(), chunk.stored.end(), stored.get());
  if (chunk.encoding == format::Encoding::kRaw) {
    payload.bytes = {stored.get(), chunk.stored.size()};
    payload.owned = std::move(stored);
    return payload;
  }
  const auto refuse = [&chunk](std::string_view why) {
    return Error{
        fmt::format("the {} chunk at byte {} cannot be decompressed: {}", chunk_name(chunk.type), chunk.offset, why)};
  };
  const auto claimed = ZSTD_getFrameContentSize(stored.get(), chunk.stored.size());
  if (claimed == ZSTD_CONTENTSIZE_ERROR) return refuse("it is not a zstd frame");
  if (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != chunk.raw_size) return refuse("its sizes do not agree");
  payload.owned = std::make_unique_for_overwrite<std::byte[]>(chunk.raw_size);
  const std::size_t n = ZSTD_decompress(payload.owned.get(), chunk.raw_size, stored.get(), chunk.stored.size());
  if (ZSTD_isError(n) != 0) return refuse(ZSTD_getErrorName(n));
  if (n != chunk.raw_size) return refuse("it is shorter than it claims");
  payload.bytes = {payload.owned.get(), n};
  return payload;
}

}  // namespace karst::reader
