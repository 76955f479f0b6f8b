#include "collect/snapshot.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collect/clock.h"
#include "format/trace.h"

namespace karst::collect {
namespace {

/// An empty file that holds a free name until the trace takes its place.
class NumberedName {
 public:
  static Result<NumberedName> take(const std::string& stem) {
    for (int number = 1; number < 1'000'000; ++number) {
      const std::string path = stem + "-" + std::to_string(number) + ".karst";
      const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (fd >= 0) {
        close(fd);
        return NumberedName(path);
      }
      if (errno != EEXIST) return Error{path + " cannot be made: " + std::strerror(errno) + "; see -o"};
    }
    return Error{stem + "-1.karst and a million more are there already; see -o"};
  }
  NumberedName(NumberedName&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  NumberedName& operator=(NumberedName&&) = delete;
  ~NumberedName() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  explicit NumberedName(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// From when on no thread lacks anything that was overwritten.
std::uint64_t whole_from(const ArenaView& arena) {
  std::unordered_map<std::uint32_t, ArenaBlock> oldest;
  for (const ArenaBlock& block : arena.blocks()) {
    const auto [at, fresh] = oldest.try_emplace(block.thread, block);
    if (!fresh && block.sequence < at->second.sequence) at->second = block;
  }
  std::uint64_t from = 0;
  for (const auto& [thread, block] : oldest)
    if (block.sequence != 0) from = std::max(from, block.ticks);
  return from;
}

}  // namespace

Result<SnapshotResult> snapshot(Attached target, const SnapshotRange& range, const std::filesystem::path& output,
                                const RecordingOptions& asked) {
  const reader::ClockPair now = read_clock_pair();
  // The rate from the longest stretch there is.
  const reader::Clock clock = make_clock({target.arena.start(), now});
  const auto ticks_ago = [&](std::uint64_t ns) {
    const auto ticks =
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(ns) * clock.ticks_per_second / 1'000'000'000U);
    return now.ticks > ticks ? now.ticks - ticks : 1;
  };
  RecordingOptions options = asked;
  options.to = ticks_ago(range.to_ns);
  options.from = range.from_ns != 0 ? std::max(ticks_ago(range.from_ns), target.arena.start().ticks) : 0;
  options.moment = "karst snapshot";

  std::optional<NumberedName> name;
  std::filesystem::path file = output;
  if (file.empty()) {
    auto taken = NumberedName::take(target.process.name + "-" + std::to_string(target.process.pid));
    if (!taken) return taken.error();
    file = taken->path();
    name.emplace(std::move(*taken));
  }
  auto writer = TraceWriter::create(file);
  if (!writer) return writer.error();
  SnapshotResult result;
  result.file = file;
  const std::uint64_t whole = whole_from(target.arena);
  if (options.from != 0 && whole > options.from)
    result.missing_ns = clock.to_ns(std::min(whole, options.to) - options.from);
  std::vector<RecordedProcess> processes;
  processes.push_back({.history = History(std::move(target.arena)), .moments = {}, .inherited = {}});
  result.summary = record(processes, {now}, options, *writer);
  if (const Status done = writer->finish(); !done) return done.error();
  if (name) name->keep();
  return result;
}

}  // namespace karst::collect
