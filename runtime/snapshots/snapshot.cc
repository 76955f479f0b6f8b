// SPDX-License-Identifier: MIT
#include "runtime/snapshots/snapshot.h"

#include <errno.h>
#include <sys/mman.h>

#include "runtime/recording/arena.h"
#include "runtime/recording/state.h"
#include "runtime/recording/thread.h"
#include "runtime/snapshots/raw_file.h"
#include "runtime/snapshots/raw_trace.h"
#include "runtime/snapshots/snapshot_copy.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// A payload of a BLKS chunk, and how much of its space it takes.
struct Segment {
  std::uint64_t size;
  std::uint64_t events;
  char payload[];
};
constexpr std::size_t kSegmentSize = std::size_t{1} << 20;
constexpr std::size_t kSegmentSpace = kSegmentSize - sizeof(Segment);

}  // namespace

struct Snapshot {
  std::uint64_t size;  ///< of the mapping
  std::uint64_t threads_offset;
  std::uint64_t segments_offset;
  std::uint32_t thread_count;
  std::uint32_t segment_count;
  std::uint64_t switches_offset;
  std::uint32_t switch_count;
  std::uint32_t switches_cut;
  ArenaHeader header;  ///< as it was
  MomentRecord moment;
  char what[kMostSnapshotText];
};

namespace {

const Segment& segment_of(const Snapshot& s, std::uint32_t i) {
  return *reinterpret_cast<const Segment*>(reinterpret_cast<const char*>(&s) + s.segments_offset + i * kSegmentSize);
}

MomentRecord moment_of(const SnapshotRequest& request) {
  MomentRecord m{};
  m.number = 1;
  m.kind = static_cast<std::uint32_t>(request.kind);
  m.begin_ticks = m.kept_from = request.since != 0 ? request.since : g_arena.header().start_ticks;
  m.end_ticks = m.kept_to = request.until;
  m.whole_from = m.kept_from;
  m.thread = request.kind == MomentKind::kCrash && karst_state != nullptr && karst_state->live != 0
                 ? karst_state->thread
                 : kNoThread;
  m.tid = static_cast<std::uint32_t>(sys::gettid());
  return m;
}

void note_losses(MomentRecord& m, const Copying& copying) {
  m.lost_events = copying.lost_events();
  if (copying.whole_from() > m.whole_from) m.whole_from = copying.whole_from();
  if (m.whole_from > m.kept_from || m.lost_events != 0) m.flags |= kMomentGaveUp;
}

/// What came before the oldest record of the log of switches cannot be read right.
std::uint64_t begin_of_switches() {
  const ArenaControl& c = g_arena.control();
  const std::uint64_t count = load(c.switch_count);
  if (count <= kArenaSwitches) return 0;
  // A later one than the oldest: more may come while blocks are copied.
  const ArenaSwitch* log = g_arena.switches();
  return log[(count + kArenaSwitches / 2) % kArenaSwitches].begin_ticks;
}

/// Space for the copying of blocks and the writing of a file.
constexpr std::size_t kSwitchesSize = kArenaSwitches * sizeof(ArenaSwitch);
constexpr std::size_t kFileSpace = RawFile::kNameSpace + kTableSpace + kSwitchesSize;

/// What is copied and written at a time: it stays in the processor's cache in between, and is long enough for the
/// kernel to make its own copy of large pages.
constexpr std::size_t kWrittenAtOnce = std::size_t{512} << 10;

int write_now(RawFile& file, char* space, const SnapshotRequest& request, char* payload, std::uint64_t& events) {
  Copying copying(request.since, request.until, begin_of_switches());
  if (!copying) return -ENOMEM;
  events = 0;
  std::uint64_t size = 0;
  std::uint64_t filled = 0;
  std::uint32_t crc = 0;
  file.expect(copying.blocks() * kCopiedBlockMost);
  while (copying.fill(payload, kWrittenAtOnce, size, filled, &crc)) {
    const RawFile::Piece piece{payload, size};
    file.chunk(ChunkType::kBlocks, &piece, 1, crc);
    events += filled;
    if (file.error() != 0) return file.error();
  }
  MomentRecord moment = moment_of(request);
  note_losses(moment, copying);
  // Behind the blocks, as what was lost is known only now. Readers take chunks in any order.
  auto* switches = reinterpret_cast<ArenaSwitch*>(space + kTableSpace);
  std::uint64_t first = 0;
  const std::uint32_t switch_count = copy_switches(switches, first);
  ArenaHeader& h = g_arena.header();
  note_thread_names();
  write_tables(file, space,
               {&h, &g_arena.thread(0), g_arena.thread_count(), &moment, request.what, switches, switch_count,
                first != 0, request.answer_within});
  return file.error();
}

}  // namespace

Snapshot* take_snapshot(const SnapshotRequest& request) {
  Copying copying(request.since, request.until, begin_of_switches());
  if (!copying) return nullptr;
  const std::uint32_t threads = g_arena.thread_count();
  const std::uint64_t threads_size = align_up(threads * sizeof(ArenaThread), KARST_BLOCK_SIZE);
  constexpr std::uint64_t kPerSegment = kSegmentSpace / kCopiedBlockMost - 1;
  const std::uint64_t segments = copying.blocks() / kPerSegment + 1;
  // Segments at the borders of huge pages, where the system has such.
  const std::uint64_t head = align_up(sizeof(Snapshot), KARST_BLOCK_SIZE) + kSwitchesSize + threads_size;
  const std::uint64_t size = head + kHugePage + segments * kSegmentSize;
  const long got = sys::mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(got)) return nullptr;
  auto& s = *reinterpret_cast<Snapshot*>(got);
  s.size = size;
  s.switches_offset = align_up(sizeof(Snapshot), KARST_BLOCK_SIZE);
  s.threads_offset = s.switches_offset + kSwitchesSize;
  s.segments_offset = align_up(static_cast<std::uint64_t>(got) + head, kHugePage) - static_cast<std::uint64_t>(got);
  char* base = reinterpret_cast<char*>(got);
  if (segments > 4) sys::madvise(base + s.segments_offset, segments * kSegmentSize, MADV_HUGEPAGE);
  for (; s.segment_count < segments; ++s.segment_count) {
    char* at = base + s.segments_offset + s.segment_count * kSegmentSize;
    // Made real at once: a fault for each page would cost as much as the copy.
    if (copying.left() * kBlockSize >= kSegmentSize && s.segment_count % 2 == 0)
      sys::populate(at, s.segment_count + 1 < segments ? 2 * kSegmentSize : kSegmentSize);
    auto& segment = *reinterpret_cast<Segment*>(at);
    if (!copying.fill(segment.payload, kSegmentSpace, segment.size, segment.events)) break;
  }
  std::uint64_t first = 0;
  s.switch_count = copy_switches(reinterpret_cast<ArenaSwitch*>(base + s.switches_offset), first);
  s.switches_cut = first != 0 ? 1 : 0;
  note_thread_names();
  s.header = g_arena.header();
  s.thread_count = threads;
  copy(base + s.threads_offset, &g_arena.thread(0), threads * sizeof(ArenaThread));
  s.moment = moment_of(request);
  note_losses(s.moment, copying);
  copy_text(s.what, request.what);
  return &s;
}

void copy_text(char (&to)[kMostSnapshotText], const char* text) {
  const std::size_t size = length(text);
  const std::size_t kept = size < sizeof to ? size : sizeof to - 1;
  copy(to, text, kept);
  to[kept] = '\0';
}

void set_text(Snapshot& snapshot, const char* text) { copy_text(snapshot.what, text); }

void free_snapshot(Snapshot* snapshot) {
  if (snapshot != nullptr) sys::munmap(snapshot, snapshot->size);
}

std::uint64_t whole_from(const Snapshot& snapshot) { return snapshot.moment.whole_from; }

int write_snapshot(const Snapshot& s, const char* path) {
  const Pages space(kFileSpace);
  if (!space) return -ENOMEM;
  RawFile file(path, space.data());
  const char* base = reinterpret_cast<const char*>(&s);
  write_tables(file, space.data() + RawFile::kNameSpace,
               {&s.header, reinterpret_cast<const ArenaThread*>(base + s.threads_offset), s.thread_count, &s.moment,
                s.what, reinterpret_cast<const ArenaSwitch*>(base + s.switches_offset), s.switch_count,
                s.switches_cut != 0, kAnswerWithin});
  std::uint64_t events = 0;
  file.expect(s.segment_count * kSegmentSize);
  for (std::uint32_t i = 0; i < s.segment_count; ++i) {
    const Segment& segment = segment_of(s, i);
    const RawFile::Piece piece{segment.payload, segment.size};
    file.chunk(ChunkType::kBlocks, &piece, 1);
    events += segment.events;
  }
  return file.finish(events, false);
}

int save_snapshot(const SnapshotRequest& request, const char* path) {
  const Pages space(kFileSpace + kWrittenAtOnce);
  if (!space) return -ENOMEM;
  RawFile file(path, space.data());
  if (file.error() != 0) return file.error();
  std::uint64_t events = 0;
  const int wrong = write_now(file, space.data() + RawFile::kNameSpace, request, space.data() + kFileSpace, events);
  return wrong != 0 ? wrong : file.finish(events, false);
}

int save_numbered_snapshot(const SnapshotRequest& request, const char* directory, SnapshotName* written) {
  constexpr std::size_t kPath = 4096;
  const Pages space(kFileSpace + kWrittenAtOnce + 2 * kPath);
  if (!space) return -ENOMEM;
  char* path = space.data() + kFileSpace + kWrittenAtOnce;
  const ArenaHeader& h = g_arena.header();
  std::size_t name_size = h.executable_size;
  const char* name = g_arena.text(h.executable_offset, static_cast<std::uint32_t>(name_size));
  if (name == nullptr) name_size = 0;
  for (std::size_t i = name_size; i != 0; --i) {
    if (name[i - 1] != '/') continue;
    name += i;
    name_size -= i;
    break;
  }
  std::size_t size = 0;
  const auto text = [&](const char* from, std::size_t n) {
    if (size + n < kPath - 64) {
      copy(path + size, from, n);
      size += n;
    }
  };
  const auto number = [&](std::uint64_t n) {
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + n % 10);
    while ((n /= 10) != 0);
    text(digits + at, sizeof digits - at);
  };
  if (*directory != '\0') {
    text(directory, length(directory));
    text("/", 1);
  }
  if (name_size == 0)
    text("program", 7);
  else
    text(name, name_size);
  text("-", 1);
  number(h.pid);
  text("-", 1);
  const std::size_t stem = size;
  const auto set_number = [&](std::uint64_t n) {
    size = stem;
    number(n);
    text(".karst", 7);
  };
  set_number(1);
  RawFile file(path, space.data());
  if (file.error() != 0) return file.error();
  if (request.kind == MomentKind::kCrash) file.keep_safe();
  std::uint64_t events = 0;
  const int wrong = write_now(file, space.data() + RawFile::kNameSpace, request, space.data() + kFileSpace, events);
  if (wrong != 0) return wrong;
  for (std::uint64_t n = 1; n < 1'000'000; ++n) {
    set_number(n);
    file.rename_to(path);
    const int done = file.finish(events, true);
    if (done == 0 && written != nullptr) {
      const std::size_t begin = *directory != '\0' ? length(directory) + 1 : 0;
      const std::size_t shown = size - begin < sizeof *written ? size - begin : sizeof *written - 1;
      copy(*written, path + begin, shown);
      (*written)[shown] = '\0';
    }
    if (done != -EEXIST) return done;
  }
  return -EEXIST;
}

}  // namespace karst::runtime
