// Perfetto's protobuf as a trace of ours: what our own export said, and what others may say.
#include <protozero/pbf_writer.hpp>

#include "export/export.h"
#include "import/perfetto_fields.h"
#include "test/export/exported.h"
#include "test/import/imported.h"

namespace karst::importing {
namespace {

namespace pf = perfetto;
using Pbf = protozero::pbf_writer;

struct ImportedPackets : Imported {
  explicit ImportedPackets(std::string_view bytes) : Imported(import_perfetto, bytes) {}
};

/// A file of packets, each of which `fill` writes.
class File {
 public:
  template <typename Fill>
  File& packet(std::uint64_t sequence, Fill fill) {
    Pbf file(bytes_);
    Pbf made(file, pf::kTracePacket);
    made.add_uint64(pf::kSequenceId, sequence);
    fill(made);
    return *this;
  }
  File& thread(std::uint64_t uuid, int pid, int tid, const char* name) {
    return packet(1, [&](Pbf& made) {
      Pbf descriptor(made, pf::kTrackDescriptor);
      descriptor.add_uint64(pf::kUuid, uuid);
      Pbf body(descriptor, pf::kThread);
      body.add_int32(pf::kThreadPid, pid);
      body.add_int32(pf::kTid, tid);
      body.add_string(pf::kThreadName, name);
    });
  }
  File& track(std::uint64_t uuid, std::uint64_t parent, const char* name) {
    return packet(1, [&](Pbf& made) {
      Pbf descriptor(made, pf::kTrackDescriptor);
      descriptor.add_uint64(pf::kUuid, uuid);
      descriptor.add_uint64(pf::kParentUuid, parent);
      descriptor.add_string(pf::kTrackName, name);
    });
  }
  File& event(std::uint64_t sequence, std::uint64_t time, pf::EventType type, std::uint64_t track,
              const char* name = "", std::uint64_t clock = 0) {
    return packet(sequence, [&](Pbf& made) {
      made.add_uint64(pf::kTimestamp, time);
      if (clock != 0) made.add_uint64(pf::kTimestampClockId, clock);
      Pbf event(made, pf::kTrackEvent);
      event.add_uint64(pf::kType, type);
      event.add_uint64(pf::kTrackUuid, track);
      if (*name != 0) event.add_string(pf::kName, name);
    });
  }
  File& clocks(std::uint64_t sequence, std::vector<std::pair<std::uint64_t, std::uint64_t>> readings,
               std::uint64_t unit = 1, bool incremental = false) {
    return packet(sequence, [&](Pbf& made) {
      Pbf snapshot(made, pf::kClockSnapshot);
      for (const auto& [clock, time] : readings) {
        Pbf reading(snapshot, pf::kClocks);
        reading.add_uint64(pf::kClockId, clock);
        reading.add_uint64(pf::kClockTimestamp, time);
        if (clock < pf::kFirstOwnClock) continue;
        reading.add_uint64(pf::kUnitMultiplierNs, unit);
        reading.add_bool(pf::kIsIncremental, incremental);
      }
    });
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

TEST(ImportPerfetto, HasWhatOurOwnExportHad) {
  test::SampleTrace sample;
  const reader::Trace trace = test::rich_trace(sample);
  const std::string bytes = test::exported(trace, exporting::export_perfetto, test::all_threads(trace));
  EXPECT_TRUE(may_be_perfetto(bytes));
  const ImportedPackets imported(bytes);
  ASSERT_EQ(imported.error, "");
  EXPECT_EQ(rows_of(imported.trace()), rows_of(trace));
  EXPECT_EQ(imported.trace().processes()[0].name, trace.processes()[0].name);
  EXPECT_EQ(imported.trace().processes()[0].threads[1].name, "worker");
  EXPECT_EQ(imported.summary.aside, 0U);
}

TEST(ImportPerfetto, TracksOfNoThreadAreThreadsOfTheirProcess) {
  File file;
  file.event(1, 5, pf::kSliceBegin, 77, "early").event(1, 9, pf::kSliceEnd, 77);  // its descriptor comes later
  file.thread(7, 10, 11, "main").track(77, 7, "GPU").track(88, 88, "own parent");
  file.event(1, 1, pf::kSliceBegin, 7, "a").event(1, 3, pf::kSliceBegin, 7, "b").event(1, 3, pf::kSliceEnd, 7);
  file.event(1, 8, pf::kSliceBegin, 7, "c").event(1, 2, pf::kInstant, 7, "note").event(1, 6, pf::kSliceEnd, 99);
  const ImportedPackets imported(file.bytes());
  EXPECT_EQ(imported.trees(), (std::vector<std::string>{"10/11: a~(b0 c~)", "10/900000000: early4", "0/900000001:"}));
  EXPECT_EQ(imported.trace().processes()[0].threads[1].name, "GPU");
  EXPECT_EQ(imported.summary.notes, 1U);
  EXPECT_EQ(imported.summary.left_out.at("ends of calls that have no begin"), 1U);
}

TEST(ImportPerfetto, TimesOfSeveralClocksAreOnOne) {
  File file;
  file.thread(7, 10, 11, "main").clocks(1, {{6, 1'000'000}, {3, 400'000}});
  file.clocks(2, {{6, 1'000'000}, {64, 50}}, 1000).clocks(3, {{3, 400'100}, {64, 7}}, 10, true);
  file.event(1, 1'000'000, pf::kSliceBegin, 7, "boottime", 6).event(2, 51, pf::kSliceBegin, 7, "own", 64);
  file.event(3, 250, pf::kSliceBegin, 7, "since", 64).event(3, 1, pf::kSliceEnd, 7, "", 64);
  file.event(1, 405'000, pf::kSliceEnd, 7, "", 3).event(1, 1'009'000, pf::kSliceEnd, 7);
  file.event(2, 1, pf::kSliceBegin, 7, "unknown", 9).event(4, 1, pf::kSliceBegin, 7, "another's", 64);
  const ImportedPackets imported(file.bytes());
  EXPECT_EQ(imported.trees(), std::vector<std::string>{"10/11: boottime9000(own4000(since10))"});
  EXPECT_EQ(imported.summary.left_out.at("events without a time that can be"), 2U);
}

TEST(ImportPerfetto, StateOfASequenceEndsWhereItIsCleared) {
  File file;
  file.thread(7, 10, 11, "main");
  const auto begin = [&](std::uint64_t time, bool interned, bool clear) {
    file.packet(1, [&](Pbf& made) {
      made.add_uint64(pf::kTimestamp, time);
      if (clear) made.add_uint64(pf::kSequenceFlags, pf::kStateCleared);
      Pbf event(made, pf::kTrackEvent);
      event.add_uint64(pf::kType, pf::kSliceBegin);
      event.add_uint64(pf::kTrackUuid, 7);
      event.add_uint64(pf::kEventNameIid, 4);
      if (!interned) return;
      event.commit();
      Pbf data(made, pf::kInternedData);
      Pbf name(data, pf::kEventNames);
      name.add_uint64(pf::kNameIid, 4);
      name.add_string(pf::kNameText, "four");
    });
  };
  begin(1, true, false);
  begin(2, false, false);
  begin(3, false, true);
  EXPECT_EQ(ImportedPackets(file.bytes()).trees(), std::vector<std::string>{"10/11: four~(four~((no name)~))"});
}

TEST(ImportPerfetto, DamageCostsAPacketOrTheEnd) {
  File file;
  file.thread(7, 10, 11, "main").event(1, 1, pf::kSliceBegin, 7, "a").event(1, 3, pf::kSliceEnd, 7);
  const std::string whole = file.bytes();
  const std::string damaged = whole + std::string("\x0a\x02\x0a\x7f", 4) + whole;
  EXPECT_EQ(ImportedPackets(damaged).summary.left_out.at("damaged packets"), 1U);
  EXPECT_EQ(ImportedPackets(damaged).summary.calls, 2U);
  const ImportedPackets cut(whole.substr(0, whole.size() - 1));
  EXPECT_EQ(cut.trees(), std::vector<std::string>{"10/11: a~"});
  EXPECT_EQ(cut.summary.left_out.size(), 1U);
  EXPECT_NE(ImportedPackets("").error, "");
}

TEST(ImportPerfetto, FieldsOfOtherTypesAreNone) {
  // A time that is text, a name that is a number, a track event that is a number.
  File file;
  file.packet(1, [](Pbf& made) {
    made.add_string(pf::kTimestamp, "now");
    Pbf event(made, pf::kTrackEvent);
    event.add_string(pf::kType, "begin");
    event.add_uint64(pf::kName, 7);
  });
  file.packet(1, [](Pbf& made) { made.add_uint64(pf::kTrackEvent, 7); });
  file.packet(1, [](Pbf& made) { made.add_fixed32(pf::kInternedData, 7); });
  EXPECT_EQ(
      ImportedPackets(file.bytes()).error,
      "there are no calls and no samples in it; left out: 1 events that are neither begin, end, instant nor counter");
}

TEST(ImportPerfetto, TextIsNone) {
  for (const char* text : {"", "\n", "\nhello, world", "{}", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"})
    EXPECT_FALSE(may_be_perfetto(text)) << text;
}

}  // namespace
}  // namespace karst::importing
