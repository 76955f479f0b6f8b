// Damaged, cut and foreign files: never a crash, the rest is kept, and what is wrong is said.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>

#include "reader/trace.h"
#include "test/reader/describe.h"
#include "test/reader/small_trace.h"
#include "write/synthetic.h"

namespace karst::test {
namespace {

using format::ChunkType;

// Everything a user of the trace would touch.
std::uint64_t use(const reader::Trace& trace) {
  std::uint64_t rows = 0;
  for (const auto& process : trace.processes()) {
    for (const auto& function : process.functions) {
      if (function.id != 0) rows += process.modules.at(function.module).path.size() * 0;
    }
    for (const auto& thread : process.threads) {
      const auto calls = rebuild_calls(trace, thread);
      for (std::size_t i = 0; i < calls.size(); ++i) trace.function(process, calls.function[i]);
      rows += calls.size();
    }
  }
  return rows;
}

std::string error_of(const Bytes& bytes) {
  auto trace = reader::Trace::open_memory(bytes, "bad.karst");
  return trace.ok() ? std::string("opened") : trace.error().message;
}

Bytes text_bytes(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return Bytes(view.begin(), view.end());
}

// Offsets of the chunks of a sound file.
struct Place {
  std::size_t offset;
  format::ChunkHeader header;
};
std::vector<Place> places(const Bytes& bytes) {
  std::vector<Place> found;
  for (std::size_t at = sizeof(format::FileHeader); at < bytes.size();) {
    Place place{at, {}};
    std::memcpy(&place.header, bytes.data() + at, sizeof place.header);
    found.push_back(place);
    at += sizeof place.header + (place.header.stored_size + 7) / 8 * 8;
  }
  return found;
}

TEST(Cut, AtEveryByteWhatLiesBeforeTheCutIsRead) {
  const Bytes whole = small_trace();
  const auto chunks = places(whole);
  std::uint64_t rows = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    auto trace = reader::Trace::open_memory(part, "cut.karst");
    if (size < sizeof(format::FileHeader)) {
      ASSERT_FALSE(trace.ok()) << size;
      continue;
    }
    ASSERT_TRUE(trace.ok()) << size << trace.error().message;
    EXPECT_FALSE(trace->complete());
    EXPECT_TRUE(has_problem(*trace, "it was cut")) << size;
    // Rows never become fewer as the file gets longer: what was before the cut stays.
    const std::uint64_t now = use(*trace);
    EXPECT_GE(now, rows) << size;
    rows = now;
    for (const auto& place : chunks) {
      const std::size_t end = place.offset + sizeof(format::ChunkHeader) + place.header.stored_size;
      if (end > size) continue;
      const auto type = static_cast<ChunkType>(place.header.type);
      if (type == ChunkType::kProcesses) {
        EXPECT_EQ(trace->processes().at(0).pid, 4711U) << size;
      }
      if (type == ChunkType::kSymbols) {
        EXPECT_EQ(trace->processes().at(0).functions.at(1).name, "main");
      }
      if (type == ChunkType::kBlocks) {
        EXPECT_EQ(trace->event_count(), 11U) << size;
      }
      if (type == ChunkType::kSource) {
        EXPECT_EQ(trace->sources().size(), 1U) << size;
      }
    }
  }
  EXPECT_EQ(rows, 5U);
}

TEST(Cut, EventsOfACutBlockAreKeptOneByOne) {
  const Bytes whole = small_trace();
  for (const auto& place : places(whole)) {
    if (static_cast<ChunkType>(place.header.type) != ChunkType::kBlocks) continue;
    const std::size_t first_event =
        place.offset + sizeof(format::ChunkHeader) + sizeof(format::BlocksHeader) + sizeof(format::BlockRecord);
    for (std::size_t bytes = 0; bytes <= 32; ++bytes) {
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first_event + bytes));
      auto trace = reader::Trace::open_memory(part, "cut.karst");
      ASSERT_TRUE(trace.ok());
      EXPECT_EQ(trace->event_count(), bytes / 8) << bytes;
      EXPECT_TRUE(has_problem(*trace, "without a checksum"));
    }
  }
}

TEST(Flip, OfAnyBitIsReportedAndNeverCrashes) {
  const Bytes whole = small_trace();
  std::set<std::size_t> padding;
  for (const auto& place : places(whole)) {
    const std::size_t end = place.offset + sizeof(format::ChunkHeader) + place.header.stored_size;
    for (std::size_t at = end; at % 8 != 0; ++at) padding.insert(at);
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes damaged = whole;
      damaged[at] ^= static_cast<std::byte>(1U << bit);
      auto trace = reader::Trace::open_memory(damaged, "flip.karst");
      if (padding.count(at) != 0) {
        ASSERT_TRUE(trace.ok());
        EXPECT_EQ(all_problems(*trace), "");
        continue;
      }
      if (!trace.ok()) {
        EXPECT_LT(at, 8U) << "only the magic makes a file foreign";
        continue;
      }
      EXPECT_FALSE(trace->problems().empty()) << at;
      use(*trace);
    }
  }
}

TEST(Flip, CostsOnlyTheDamagedChunk) {
  const Bytes whole = small_trace();
  for (const auto& place : places(whole)) {
    for (const std::size_t at : {place.offset + 3, place.offset + sizeof(format::ChunkHeader) + 1}) {
      Bytes damaged = whole;
      damaged[at] ^= std::byte{0x10};
      auto trace = reader::Trace::open_memory(damaged, "flip.karst");
      ASSERT_TRUE(trace.ok());
      const auto type = static_cast<ChunkType>(place.header.type);
      EXPECT_TRUE(has_problem(*trace, "at byte " + std::to_string(place.offset))) << all_problems(*trace);
      EXPECT_EQ(trace->complete(), type != ChunkType::kEnd);
      EXPECT_EQ(trace->sources().size(), type == ChunkType::kSource ? 0U : 1U);
      EXPECT_EQ(trace->event_count(), type == ChunkType::kBlocks ? 0U : 11U);
      if (type != ChunkType::kProcesses) {
        EXPECT_EQ(trace->processes().at(0).pid, 4711U);
      }
      if (type != ChunkType::kSymbols && type != ChunkType::kFunctions) {
        EXPECT_EQ(trace->processes().at(0).functions.at(2).name, "ns::work(int)");
      }
    }
  }
}

TEST(Flip, InOneOfManyBlockChunksLeavesAGapInTheHistory) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writing::SyntheticTrace wanted;
  wanted.events = 500'000;
  add_synthetic(writer, wanted);
  ASSERT_TRUE(writer.finish().ok());
  std::vector<Place> blocks;
  for (const auto& place : places(bytes)) {
    if (static_cast<ChunkType>(place.header.type) == ChunkType::kBlocks) blocks.push_back(place);
  }
  ASSERT_GE(blocks.size(), 4U);
  // Once the chunk's header, once its payload.
  for (const std::size_t at : {blocks[1].offset + 9, blocks[1].offset + 500'000}) {
    Bytes damaged = bytes;
    damaged[at] ^= std::byte{4};
    auto trace = reader::Trace::open_memory(damaged, "gap.karst");
    ASSERT_TRUE(trace.ok());
    EXPECT_TRUE(has_problem(*trace, "of 500000 events could not be read")) << all_problems(*trace);
    const auto calls = rebuild_calls(*trace, trace->processes().at(0).threads.at(0));
    EXPECT_GT(calls.missing_blocks, 0U);
    EXPECT_EQ(calls.events, 500'000 - calls.missing_blocks * wanted.block_events);
    EXPECT_EQ(calls.unmatched_exits + calls.missing_exits, 0U);
    EXPECT_TRUE(std::is_sorted(calls.begin.begin(), calls.begin.end()));
  }
}

// Checksums of a large file are looked at by several threads, behind everything else.
TEST(Flip, InALargeFileCostsThoseChunksAlone) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  writing::SyntheticTrace wanted;
  wanted.events = 1'300'000;
  add_synthetic(writer, wanted);
  ASSERT_TRUE(writer.finish().ok());
  ASSERT_GT(bytes.size(), std::size_t{8} << 20);
  std::vector<Place> blocks;
  for (const auto& place : places(bytes)) {
    if (static_cast<ChunkType>(place.header.type) == ChunkType::kBlocks) blocks.push_back(place);
  }
  ASSERT_GE(blocks.size(), 6U);
  const auto whole = reader::Trace::open_memory(bytes, "large.karst");
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->problems().empty()) << all_problems(*whole);
  EXPECT_EQ(whole->event_count(), wanted.events);
  for (const std::size_t which : {std::size_t{1}, std::size_t{2}, blocks.size() - 1})
    bytes[blocks[which].offset + 5000] ^= std::byte{4};
  const auto trace = reader::Trace::open_memory(bytes, "large.karst");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->problems().size(), 4U) << all_problems(*trace);
  for (const std::size_t which : {std::size_t{1}, std::size_t{2}, blocks.size() - 1}) {
    EXPECT_TRUE(has_problem(*trace, "the BLKS chunk at byte " + std::to_string(blocks[which].offset) +
                                        " is damaged (its checksum does not fit)"))
        << all_problems(*trace);
  }
  const auto calls = rebuild_calls(*trace, trace->processes().at(0).threads.at(0));
  EXPECT_EQ(trace->event_count(), calls.events);
  EXPECT_EQ(calls.unmatched_exits + calls.missing_exits, 0U);
}

TEST(Foreign, FilesAreNamedForWhatTheyAre) {
  EXPECT_NE(error_of(text_bytes("\x7f"
                                "ELF\x02\x01\x01 and more bytes than a header has ........."))
                .find("ELF"),
            std::string::npos);
  EXPECT_NE(error_of(text_bytes("{\"traceEvents\": []}")).find("JSON"), std::string::npos);
  EXPECT_NE(error_of(text_bytes("PERFILE2")).find("perf.data"), std::string::npos);
  EXPECT_NE(error_of(text_bytes("hello")).find("not a Karst trace"), std::string::npos);
  EXPECT_NE(error_of(text_bytes("hello")).find("bad.karst"), std::string::npos);
  EXPECT_NE(error_of(text_bytes("\x89KARST\n and so on")).find("line ends"), std::string::npos);
  EXPECT_NE(error_of({}).find("empty"), std::string::npos);
  EXPECT_NE(error_of(Bytes(4096)).find("not a Karst trace"), std::string::npos);
}

TEST(Foreign, PathsThatAreNoFilesAreRefused) {
  const auto error = [](const std::filesystem::path& path) {
    auto trace = reader::Trace::open(path);
    return trace.ok() ? std::string("opened") : trace.error().message;
  };
  const auto directory = std::filesystem::temp_directory_path();
  EXPECT_NE(error(directory).find("is a directory"), std::string::npos);
  EXPECT_NE(error(directory / "karst-no-such-file").find("no such file"), std::string::npos);
  EXPECT_NE(error("/dev/zero").find("not a regular file"), std::string::npos);
  const auto empty = directory / "karst-empty-file";
  std::ofstream(empty).close();
  EXPECT_NE(error(empty).find("is empty"), std::string::npos);
  std::filesystem::remove(empty);
}

TEST(Version, AFutureOneIsRefusedWithAdvice) {
  const auto message = error_of(file_header(2));
  EXPECT_NE(message.find("version 2.0"), std::string::npos) << message;
  EXPECT_NE(message.find("newer"), std::string::npos) << message;
}

TEST(Version, ALongerFileHeaderIsSkipped) {
  Bytes bytes = file_header(1, 48);
  bytes.resize(48, std::byte{0xee});
  append(bytes, chunk(ChunkType::kEnd, pack(format::EndRecord{})));
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->complete());
}

TEST(Version, UnknownChunksAreSkippedSilently) {
  const Bytes small = small_trace();
  Bytes bytes(small.begin(), small.begin() + 32);
  const Bytes stranger = chunk(format::fourcc("NOTE"), Bytes(13, std::byte{7}));
  std::uint64_t strangers = 0;
  const auto chunks = places(small);
  for (const auto& place : chunks) {
    append(bytes, stranger);
    ++strangers;
    const std::size_t size = sizeof(format::ChunkHeader) + (place.header.stored_size + 7) / 8 * 8;
    if (static_cast<ChunkType>(place.header.type) == ChunkType::kEnd) {
      append(bytes, chunk(ChunkType::kEnd, pack(format::EndRecord{chunks.size() - 1 + strangers, 11})));
    } else {
      bytes.insert(bytes.end(), small.begin() + static_cast<std::ptrdiff_t>(place.offset),
                   small.begin() + static_cast<std::ptrdiff_t>(place.offset + size));
    }
  }
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(all_problems(*trace), "");
  EXPECT_EQ(describe(*trace), describe(*reader::Trace::open_memory(small, "")));
}

TEST(Version, LongerRecordsAreReadByTheirKnownPart) {
  const format::FunctionRecord one{1, 0, 0x1010, 0, 0};
  const format::FunctionRecord two{2, 0, 0x1020, 1, 0};
  const std::uint64_t extra = 0x1122334455667788;
  Bytes bytes = file_header();
  append(bytes, chunk(ChunkType::kFunctions, pack(format::TableHeader{0, 32, 2, 0}, one, extra, two, extra)));
  append(bytes, chunk(ChunkType::kEnd, pack(format::EndRecord{1, 0}, extra)));
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->processes().at(0).functions.at(1).address, 0x1010U);
  EXPECT_EQ(trace->processes().at(0).functions.at(2).address, 0x1020U);
  EXPECT_TRUE(trace->processes().at(0).functions.at(2).filtered);
}

TEST(Order, ChunksMayComeInAnyOrder) {
  const Bytes small = small_trace();
  auto chunks = places(small);
  chunks.pop_back();
  Bytes bytes(small.begin(), small.begin() + 32);
  for (auto place = chunks.rbegin(); place != chunks.rend(); ++place) {
    const std::size_t size = sizeof(format::ChunkHeader) + (place->header.stored_size + 7) / 8 * 8;
    bytes.insert(bytes.end(), small.begin() + static_cast<std::ptrdiff_t>(place->offset),
                 small.begin() + static_cast<std::ptrdiff_t>(place->offset + size));
  }
  append(bytes, chunk(ChunkType::kEnd, pack(format::EndRecord{chunks.size(), 11})));
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(all_problems(*trace), "");
  EXPECT_EQ(describe(*trace), describe(*reader::Trace::open_memory(small, "")));
}

TEST(Again, TheLatestRecordOfAThingCounts) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  auto small = small_values();
  add_small(writer, small);
  small.process.name = "later";
  small.process.end_ticks = 77;
  small.process.functions[1].name = "later";
  small.process.modules[0].path = "later";
  small.process.threads[0].name = "later";
  small.clock.ticks_per_second = 2'400'000'000;
  add_small(writer, small);
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->processes().size(), 1U);
  const reader::Process& process = trace->processes()[0];
  EXPECT_EQ(process.name, "later");
  EXPECT_EQ(process.end_ticks, 77U);
  EXPECT_EQ(process.functions.at(1).name, "later");
  EXPECT_EQ(process.modules.at(0).path, "later");
  ASSERT_EQ(process.threads.size(), small.process.threads.size());
  EXPECT_EQ(process.threads[0].name, "later");
  EXPECT_EQ(trace->clock().ticks_per_second, 2'400'000'000U);
  // Events are no such thing: blocks of the same number are one block, and the first is used.
  EXPECT_EQ(trace->event_count(), 11U);
  EXPECT_TRUE(has_problem(*trace, "is there twice"));
}

TEST(Missing, RecordsGetStandIns) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  const format::Event events[] = {enter(5, 9), leave(6, 9)};
  writer.add_block(2, 5, 0, 5, events);
  reader::Function function;
  function.id = 4;
  function.module = 12;
  function.address = 0x1234;
  writer.add_functions(2, {&function, 1});
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  const auto& process = trace->processes().at(0);
  EXPECT_EQ(process.index, 2U);
  EXPECT_EQ(process.name, "process #2");
  EXPECT_EQ(process.threads.at(0).name, "thread #5");
  EXPECT_EQ(process.modules.at(process.functions.at(4).module).path, "unknown module");
  EXPECT_EQ(trace->function(process, 9).name, "function#9");
  EXPECT_EQ(trace->function(process, 3).name, "function#3");
  EXPECT_EQ(trace->clock().ticks_per_second, 1'000'000'000U);
  EXPECT_EQ(rebuild_calls(*trace, process.threads.at(0)).unknown_ids, 2U);
  for (const char* part : {"process 2 has no PROC", "thread 5 has no THRD", "module 12", "no clock"}) {
    EXPECT_TRUE(has_problem(*trace, part)) << part << "\n" << all_problems(*trace);
  }
}

TEST(Missing, NamesFallBackToModuleAndOffset) {
  Bytes bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  const auto small = small_values();
  writer.add_processes({&small.process, 1});
  writer.add_modules(0, small.process.modules);
  writer.add_functions(0, small.process.functions);
  ASSERT_TRUE(writer.finish().ok());
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_FALSE(trace->resolved());
  EXPECT_EQ(trace->processes()[0].functions[1].name, "app+0x1010");
  EXPECT_EQ(trace->processes()[0].functions[3].name, "libfoo.so+0x1010");
}

// Each of these would fill the memory or run for ages if a header's word were taken for granted.
TEST(Hostile, HeadersCannotMakeTheReaderAllocate) {
  const auto open = [](const Bytes& payload, ChunkType type) {
    Bytes bytes = file_header();
    append(bytes, chunk(type, payload));
    auto trace = reader::Trace::open_memory(bytes, "t");
    EXPECT_TRUE(trace.ok());
    use(*trace);
    return all_problems(*trace);
  };
  const format::FunctionRecord far{format::kMaxFunctionId, 0, 0, 0, 0};
  EXPECT_NE(open(pack(format::TableHeader{0, 24, 1, 0}, far), ChunkType::kFunctions).find("too far"),
            std::string::npos);
  const format::FunctionRecord beyond{format::kMaxFunctionId + 1, 0, 0, 0, 0};
  EXPECT_NE(open(pack(format::TableHeader{0, 24, 1, 0}, beyond), ChunkType::kFunctions).find("cannot be"),
            std::string::npos);
  format::ModuleRecord module{};
  module.module = 0xffffffff;
  EXPECT_NE(open(pack(format::TableHeader{0, 64, 1, 0}, module), ChunkType::kModules).find("too large"),
            std::string::npos);
  for (const auto& table : {format::TableHeader{0, 24, 0xffffffff, 0}, format::TableHeader{0, 0xffffffff, 1, 0},
                            format::TableHeader{0, 0, 0xffffffff, 24}, format::TableHeader{0, 24, 1, 1},
                            format::TableHeader{0, 23, 1, 1}, format::TableHeader{0xffffffff, 24, 0, 24 + 1}}) {
    EXPECT_NE(open(pack(table, far), ChunkType::kFunctions).find("impossible size"), std::string::npos);
  }
  const format::BlockRecord block{0, 0xffffffff, 0, 0};
  EXPECT_NE(open(pack(format::BlocksHeader{0, 0xffffffff}, block), ChunkType::kBlocks).find("inside a block"),
            std::string::npos);
  EXPECT_NE(open(pack(std::uint32_t{0}), ChunkType::kBlocks).find("inside a block"), std::string::npos);
}

TEST(Hostile, TextsOutsideTheHeapAreLeftEmpty) {
  for (const auto& ref :
       {format::StringRef{0, 4}, format::StringRef{3, 1}, format::StringRef{0xffffffff, 0xffffffff}}) {
    format::ThreadRecord thread{};
    thread.name = ref;
    Bytes bytes = file_header();
    append(bytes, chunk(ChunkType::kThreads,
                        pack(format::TableHeader{0, sizeof thread, 1, 3}, thread, std::array<char, 3>{'a', 'b', 'c'})));
    auto trace = reader::Trace::open_memory(bytes, "t");
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->processes().at(0).threads.at(0).name, "");
    EXPECT_TRUE(has_problem(*trace, "outside its chunk"));
  }
}

TEST(Hostile, OneLongTextSharedByManyRecordsIsBounded) {
  // 50,000 records that all name the same 1 MiB would be 50 GB.
  constexpr std::uint32_t kRecords = 50'000;
  constexpr std::uint32_t kText = 1 << 20;
  Bytes payload = pack(format::TableHeader{0, sizeof(format::SourceRecord), kRecords, kText});
  const Bytes record = pack(format::SourceRecord{{0, 0}, {0, kText}});
  for (std::uint32_t i = 0; i < kRecords; ++i) append(payload, record);
  payload.resize(payload.size() + kText, std::byte{'x'});
  Bytes bytes = file_header();
  append(bytes, chunk(ChunkType::kSource, payload));
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_TRUE(has_problem(*trace, "add up to more"));
}

TEST(Hostile, CompressedChunksCannotExpandWithoutBound) {
  const std::string zeros(64 << 20, '\0');
  Bytes packed(ZSTD_compressBound(zeros.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 1));
  const auto open = [&packed](std::uint64_t claimed) {
    Bytes bytes = file_header();
    append(bytes, chunk(static_cast<std::uint32_t>(ChunkType::kBlocks), packed, format::Encoding::kZstd, claimed));
    auto trace = reader::Trace::open_memory(bytes, "t");
    EXPECT_TRUE(trace.ok());
    return all_problems(*trace);
  };
  EXPECT_NE(open(zeros.size()).find("impossible sizes"), std::string::npos);
  EXPECT_NE(open(~std::uint64_t{0} - 1).find("more than allowed"), std::string::npos);
  EXPECT_NE(open(4096).find("sizes do not agree"), std::string::npos);
}

TEST(Hostile, CompressedBlocksAreReadLikeRawOnes) {
  const Bytes payload =
      pack(format::BlocksHeader{0, 1}, format::BlockRecord{0, 2, 0, 100}, enter(100, 1), leave(105, 1));
  Bytes packed(ZSTD_compressBound(payload.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), payload.data(), payload.size(), 1));
  Bytes bytes = file_header();
  append(bytes, chunk(static_cast<std::uint32_t>(ChunkType::kBlocks), packed, format::Encoding::kZstd, payload.size()));
  auto trace = reader::Trace::open_memory(bytes, "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->event_count(), 2U);
  EXPECT_EQ(use(*trace), 1U);
}

TEST(Memory, BytesAtAnyAlignmentAreRead) {
  const Bytes small = small_trace();
  for (std::size_t shift = 0; shift < 8; ++shift) {
    Bytes shifted(shift);
    append(shifted, small);
    auto trace = reader::Trace::open_memory(std::span(shifted).subspan(shift), "t");
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(use(*trace), 5U);
  }
}

}  // namespace
}  // namespace karst::test
