// SPDX-License-Identifier: MIT
#include "collect/recover/recover.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>
#include <utility>

#include "base/descriptor.h"
#include "collect/launch/foreign_file.h"
#include "format/arena.h"
#include "format/moments.h"
#include "format/options.h"
#include "format/trace.h"

namespace karst::collect {
namespace {

using format::ArenaHeader;

constexpr std::uint64_t kMostBytes = 2 * format::kMostMemory + (std::uint64_t{1} << 30);

std::size_t read_at(int descriptor, std::uint64_t offset, void* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = pread(descriptor, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Copies a part of the core to its place in the arena. Pages of zeros stay holes, as they were.
bool copy_part(int core, std::uint64_t from, int arena, std::uint64_t to, std::uint64_t size) {
  constexpr std::size_t kPage = format::kBlockSize;
  std::vector<std::byte> buffer(256 * kPage);
  for (std::uint64_t done = 0; done < size;) {
    const std::size_t part = std::min<std::uint64_t>(buffer.size(), size - done);
    const std::size_t got = read_at(core, from + done, buffer.data(), part);
    for (std::size_t at = 0; at < got; at += kPage) {
      const auto page = std::span(buffer).subspan(at, std::min(kPage, got - at));
      if (is_zero(page)) continue;
      if (pwrite(arena, page.data(), page.size(), static_cast<off_t>(to + done + at)) !=
          static_cast<ssize_t>(page.size()))
        return false;
    }
    if (got < part) break;  // a core that was cut short, by a limit or a full disk
    done += part;
  }
  return true;
}

/// The arena in a core: the segment that begins with its header, and all that follow within its size.
Result<ArenaView> arena_in(const CoreFile& core, int descriptor) {
  const CoreFile::Segment* first = nullptr;
  ArenaHeader header{};
  for (const CoreFile::Segment& s : core.segments) {
    if (s.size < sizeof header || read_at(descriptor, s.offset, &header, sizeof header) != sizeof header ||
        header.magic != format::kArenaMagic)
      continue;
    first = &s;
    break;
  }
  if (first == nullptr)
    return Error{core.has_runtime
                     ? "this core has no trace: its program ran with core=off or file=PATH ('karst resolve PATH' reads "
                       "that), was not traced, or the core leaves shared memory out (bit 1 of coredump_filter)"
                     : "this core has no trace: its program did not carry libkarst"};
  if (header.size > kMostBytes) return Error{"the trace memory in this core has a damaged header"};
  const Descriptor made(memfd_create("karst-core", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made || ftruncate(made.get(), static_cast<off_t>(header.size)) != 0)
    return Error{std::string("there is no memory for what the core has: ") + std::strerror(errno)};
  for (const CoreFile::Segment& s : core.segments) {
    const std::uint64_t at = s.address - first->address;
    if (s.address < first->address || at >= header.size) continue;
    if (!copy_part(descriptor, s.offset, made.get(), at, std::min(s.size, header.size - at)))
      return Error{std::string("there is no memory for what the core has: ") + std::strerror(errno)};
  }
  fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return ArenaView::of_descriptor(made.get());
}

/// The last moment that the arena knows of.
std::uint64_t last_ticks(const ArenaView& arena) {
  std::uint64_t last = std::max(arena.start().ticks, arena.later().value_or(ClockPair{}).ticks);
  std::vector<format::Event> buffer;
  for (const ArenaBlock& block : arena.blocks()) {
    last = std::max(last, block.ticks);
    for (const format::Event e : arena.read(block, buffer))
      if (e != 0 && format::event_has_time(e)) last = std::max(last, format::event_ticks(e, block.ticks));
  }
  return last;
}

/// The crash as a moment that was kept: all of the history, which led to it.
reader::Moment crash_moment(const ArenaView& arena, const CoreFile& core) {
  reader::Moment moment;
  moment.kind = static_cast<std::uint32_t>(format::MomentKind::kCrash);
  moment.begin_ticks = moment.end_ticks = moment.kept_to = last_ticks(arena);
  moment.kept_from = moment.whole_from = arena.start().ticks;
  moment.thread = format::kNoThread;
  if (!core.threads.empty()) moment.tid = static_cast<std::uint32_t>(core.threads.front());
  for (const reader::Thread& t : arena.process_without_functions().threads)
    if (t.tid == moment.tid && !t.exited) moment.thread = t.index;
  moment.what = signal_text(*core.signal);
  return moment;
}

}  // namespace

std::string signal_text(const CoreSignal& signal) {
  const char* name = sigabbrev_np(signal.number);
  std::string text = name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal.number);
  const bool is_fault = signal.number == SIGSEGV || signal.number == SIGBUS || signal.number == SIGILL ||
                        signal.number == SIGFPE || signal.number == SIGTRAP;
  if (is_fault && signal.code > 0) text += " at address " + fmt::format("{:#x}", signal.address);
  if (signal.code <= 0 && signal.number != SIGABRT) text += ", sent by a process";
  return text;
}

Result<Leftover> open_leftover(const std::filesystem::path& file) {
  const Descriptor descriptor = open_regular_file(file.string());
  if (!descriptor)
    return Error{errno == EINVAL ? "it is no regular file"
                                 : std::string("it cannot be opened: ") + std::strerror(errno)};
  unsigned char start[8] = {};
  std::uint64_t magic = 0;
  const bool any = read_at(descriptor.get(), 0, start, sizeof start) == sizeof start;
  std::memcpy(&magic, start, sizeof magic);
  const auto begins = [&](std::string_view with) { return any && std::memcmp(start, with.data(), with.size()) == 0; };
  const auto as = sandbox::Credentials::of_file(file);
  if (any && magic == format::kArenaMagic) {
    auto arena = ArenaView::of_descriptor(descriptor.get());
    if (!arena) return arena.error();
    const bool lives = arena->is_of_this_boot() && arena->process_without_functions().end_ticks == 0 &&
                       kill(static_cast<pid_t>(arena->pid()), 0) == 0;
    return Leftover{std::move(*arena), as, std::nullopt, lives};
  }
  if (begins("\x7f"
             "ELF")) {
    auto core = read_core(descriptor.get(), as);
    if (!core) return core.error();
    auto arena = arena_in(*core, descriptor.get());
    if (!arena) return arena.error();
    return Leftover{std::move(*arena), as, std::move(*core), false};
  }
  if (any && std::memcmp(start, format::kFileMagic, sizeof start) == 0)
    return Error{"it is a trace already ('karst resolve' adds names to one)"};
  if (begins("\x28\xb5\x2f\xfd") || begins("\x1f\x8b") || begins("\x04\x22\x4d\x18"))
    return Error{"it is compressed: unpack it first (zstd -d, gzip -d, lz4 -d; coredumpctl dump)"};
  return Error{"it is neither a trace, the file of an arena (file=PATH) nor a core file"};
}

Result<RecordingSummary> recover(Leftover left, RecoverOptions options, writing::TraceWriter& writer) {
  RecordedProcess process{.history = History(std::move(left.arena)), .moments = {}, .inherited = {}};
  ArenaView& arena = *process.history.arena();
  if (left.core && left.core->signal) {
    process.wait_status = left.core->signal->number | 0x80;  // as waitpid() has it of who left a core
    process.moments.push_back(crash_moment(arena, *left.core));
  }
  std::vector<ClockPair> pairs;
  if (const auto later = arena.later()) pairs.push_back(*later);
  RecordingOptions recording = std::move(options.recording);
  recording.program = options.program;
  recording.clock_is_ours = arena.is_of_this_boot();
  if (recording.clock_is_ours && left.lives) pairs.push_back(read_clock_pair());
  if (!recording.resolve.as) recording.resolve.as = left.as;
  const bool assumed = !recording.clock_is_ours && pairs.empty();
  std::vector<RecordedProcess> processes;
  processes.push_back(std::move(process));
  auto summary = record(std::move(processes), pairs, recording, writer);
  if (summary && assumed)
    summary->problems.push_back(
        {"the process ended before it had read its clock twice: times are by this machine's clock rate", 1});
  return summary;
}

}  // namespace karst::collect
