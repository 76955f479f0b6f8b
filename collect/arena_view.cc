#include "collect/arena_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "collect/arena_memory.h"
#include "format/trace.h"

namespace karst::collect {

using namespace format;

namespace {

std::uint64_t count_pages_offset(const ArenaHeader& h) {
  return (h.counts_offset + std::uint64_t{h.count_capacity} * sizeof(CountOwner) + kBlockSize - 1) / kBlockSize *
         kBlockSize;
}

bool layout_is_sound(const ArenaHeader& h, std::uint64_t size) {
  return h.size <= size && fits(h.modules_offset, h.module_capacity, sizeof(ArenaModule), size) &&
         fits(h.functions_offset, h.function_capacity, sizeof(ArenaFunction), size) &&
         h.function_capacity <= kMaxFunctionId + 1 && h.function_capacity > 0 &&
         fits(h.threads_offset, h.thread_capacity, sizeof(ArenaThread), size) &&
         fits(h.text_offset, h.text_capacity, 1, size) && h.blocks_offset % kBlockSize == 0 &&
         fits(h.control_offset, 1, sizeof(ArenaControl), size) &&
         fits(h.blocks_offset, h.block_capacity, kBlockSize, size) &&
         fits(h.counts_offset, h.count_capacity, sizeof(CountOwner), size) &&
         fits(count_pages_offset(h), h.count_capacity, sizeof(CountPage), size);
}

std::string bounded_name(const char (&name)[16]) { return {name, strnlen(name, sizeof name)}; }

}  // namespace

Result<ArenaView> ArenaView::map(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0)
    return Error{std::string("the process's arena cannot be examined: ") + std::strerror(errno)};
  const auto size = static_cast<std::size_t>(status.st_size);
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return Error{"the process's arena is not a sealed memfd; it was not made by libkarst"};
  if (size < kBlockSize) return Error{"the process's arena is too small to be one"};
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (base == MAP_FAILED) return Error{std::string("the process's arena cannot be mapped: ") + std::strerror(errno)};
  ArenaHeader layout;
  std::memcpy(&layout, base, sizeof layout);
  ArenaView view(static_cast<std::byte*>(base), size, layout);
  view.inode_ = status.st_ino;
  if (layout.magic != kArenaMagic) return Error{"the process's arena has no Karst header"};
  if (layout.version != kArenaVersion)
    return Error{"the process runs libkarst with arena version " + std::to_string(layout.version) +
                 ", this karst reads version " + std::to_string(kArenaVersion) + "; use the karst of the same release"};
  if (!layout_is_sound(layout, size) || !view.find_watching()) return Error{"the process's arena has a damaged header"};
  return view;
}

ArenaView::ArenaView(std::byte* base, std::size_t size, const ArenaHeader& layout)
    : base_(base), size_(size), layout_(layout) {}

ArenaView::ArenaView(ArenaView&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      size_(other.size_),
      inode_(other.inode_),
      layout_(other.layout_),
      watching_(other.watching_) {}

ArenaView& ArenaView::operator=(ArenaView&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(inode_, other.inode_);
  std::swap(layout_, other.layout_);
  std::swap(watching_, other.watching_);
  return *this;
}

ArenaView::~ArenaView() {
  if (base_ != nullptr) munmap(base_, size_);
}

std::string ArenaView::text(std::uint32_t offset, std::uint32_t size) const {
  if (offset > layout_.text_capacity || size > layout_.text_capacity - offset) return {};
  return {reinterpret_cast<const char*>(base_ + layout_.text_offset + offset), size};
}

std::uint32_t ArenaView::function_count() const {
  return std::min(load(live().function_count), layout_.function_capacity - 1);
}

void ArenaView::turn_off(std::uint32_t id) {
  auto* functions = reinterpret_cast<ArenaFunction*>(base_ + layout_.functions_offset);
  __atomic_and_fetch(&functions[id].flags, ~static_cast<std::uint32_t>(kArenaFunctionOn), __ATOMIC_RELEASE);
}

void ArenaView::keep(std::uint32_t id) {
  auto* functions = reinterpret_cast<ArenaFunction*>(base_ + layout_.functions_offset);
  __atomic_or_fetch(&functions[id].flags, static_cast<std::uint32_t>(kArenaFunctionKeep), __ATOMIC_RELEASE);
}

bool ArenaView::choose(std::uint32_t id, bool on) {
  std::uint32_t& flags = reinterpret_cast<ArenaFunction*>(base_ + layout_.functions_offset)[id].flags;
  constexpr auto kOn = static_cast<std::uint32_t>(kArenaFunctionOn);
  const std::uint32_t before =
      on ? __atomic_fetch_or(&flags, kOn, __ATOMIC_ACQ_REL) : __atomic_fetch_and(&flags, ~kOn, __ATOMIC_ACQ_REL);
  return ((before & kOn) != 0) != on;
}

std::uint32_t ArenaView::function_flags(std::uint32_t id) const {
  return id <= function_count() ? load(table<ArenaFunction>(layout_.functions_offset)[id].flags) : 0;
}

std::vector<reader::Switch> ArenaView::switches() const {
  const ArenaControl& c = control();
  const std::uint32_t capacity = c.switch_capacity;
  const std::uint64_t offset = c.switches_offset;
  if (capacity == 0 || capacity > kArenaSwitches || !fits(offset, capacity, sizeof(ArenaSwitch), size_)) return {};
  const std::uint64_t count = load(c.switch_count);
  std::uint64_t first = count > capacity ? count - capacity : 0;
  std::vector<reader::Switch> log;
  log.reserve(count - first);
  for (std::uint64_t i = first; i < count; ++i) {
    const ArenaSwitch& at = table<ArenaSwitch>(offset)[i % capacity];
    log.push_back({at.begin_ticks, load(at.end_ticks), at.first, at.count, at.on != 0, at.reason});
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  // What was overwritten meanwhile, or is being so.
  const std::uint64_t later = load(c.switch_count) + 1;
  const std::uint64_t sound = later > capacity ? later - capacity : 0;
  if (sound == 0) return log;
  log.erase(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(sound - first, log.size())));
  if (log.empty()) return {{0, ~std::uint64_t{0}, 0, 0, true, kSwitchesUnknown}};
  // Others of the same moment may be gone.
  const std::uint64_t moment = log[0].begin_ticks;
  const auto next = std::find_if(log.begin(), log.end(), [moment](const auto& s) { return s.begin_ticks != moment; });
  const std::uint64_t known_from = next != log.end()           ? next->begin_ticks
                                   : log.back().end_ticks != 0 ? log.back().end_ticks
                                                               : ~std::uint64_t{0};
  log.erase(log.begin(), next);
  log.insert(log.begin(), {0, known_from, 0, 0, true, kSwitchesUnknown});
  return log;
}

reader::ClockPair ArenaView::start() const {
  return {layout_.start_ticks, layout_.start_monotonic_raw_ns, layout_.start_realtime_ns,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(layout_.start_uncertainty_ticks, 1'000'000'000))};
}

reader::Process ArenaView::process_without_functions() const {
  const ArenaHeader now = live();
  reader::Process p;
  p.pid = now.pid;
  p.parent_pid = now.parent_pid;
  p.flags = now.off != 0 ? static_cast<std::uint32_t>(kProcessOff) : 0U;
  p.start_ticks = layout_.start_ticks;
  p.end_ticks = now.end_ticks;
  p.overwritten_events = now.overwritten_events;
  p.lost_events = now.lost_events;
  p.min_duration_ticks = now.min_duration_ticks;
  p.clock_period_ticks = now.clock_period_ticks;
  p.clock_longest_ticks = now.clock_longest_ticks;
  p.executable = text(now.executable_offset, now.executable_size);
  // The session's name is between `karst run` and the process, and comes last.
  p.options = text(now.options_offset, now.options_size);
  p.options = p.options.substr(0, p.options.find("session="));
  if (p.options.ends_with(',')) p.options.pop_back();
  const std::string arguments = text(now.command_line_offset, now.command_line_size);
  for (std::size_t at = 0; at < arguments.size();) {
    const std::size_t end = std::min(arguments.find('\0', at), arguments.size());
    p.command_line.push_back(arguments.substr(at, end - at));
    at = end + 1;
  }
  const std::string& path = p.executable.empty() && !p.command_line.empty() ? p.command_line[0] : p.executable;
  p.name = path.substr(path.find_last_of('/') + 1);

  const auto* modules = table<ArenaModule>(layout_.modules_offset);
  const std::uint32_t module_count = std::min(now.module_count, layout_.module_capacity);
  for (std::uint32_t i = 0; i < module_count; ++i) {
    const ArenaModule m = modules[i];
    reader::Module out;
    out.index = i;
    out.bias = m.bias;
    out.text_begin = m.text_begin;
    out.text_end = m.text_end;
    out.loaded_ticks = m.loaded_ticks;
    out.unloaded_ticks = m.unloaded_ticks;
    out.path = text(m.path_offset, m.path_size);
    out.build_id.assign(reinterpret_cast<const char*>(m.build_id),
                        std::min<std::size_t>(m.build_id_size, sizeof m.build_id));
    p.modules.push_back(std::move(out));
  }

  const auto* threads = table<ArenaThread>(layout_.threads_offset);
  const std::uint32_t thread_count = std::min(now.thread_count, layout_.thread_capacity);
  for (std::uint32_t i = 0; i < thread_count; ++i) {
    const ArenaThread t = threads[i];
    if (t.state == static_cast<std::uint32_t>(ThreadLife::kFree) ||
        t.state == static_cast<std::uint32_t>(ThreadLife::kClaimed))
      continue;
    reader::Thread out;
    out.index = i;
    out.tid = t.tid;
    out.exited = t.state == static_cast<std::uint32_t>(ThreadLife::kExited);
    out.joined_ticks = t.joined_ticks;
    out.exited_ticks = t.exited_ticks;
    out.overwritten_events = t.overwritten_events;
    p.overwritten_events += t.overwritten_events;
    out.lost_events = t.lost_events;
    out.name = text(t.given_name, t.given_name_size);
    if (out.name.empty()) out.name = bounded_name(t.name);
    p.threads.push_back(std::move(out));
  }
  return p;
}

reader::Process ArenaView::process() const {
  reader::Process p = process_without_functions();
  const std::uint32_t functions = function_count();
  p.functions.resize(functions + std::size_t{1});
  for (std::uint32_t id = 1; id <= functions; ++id) {
    if (auto f = function(id, p))
      p.functions[id] = std::move(*f);
    else
      p.flags |= kProcessDamaged;
  }
  return p;
}

std::optional<reader::Function> ArenaView::function(std::uint32_t id, const reader::Process& process) const {
  const ArenaFunction f = table<ArenaFunction>(layout_.functions_offset)[id];
  if (f.module >= process.modules.size()) return std::nullopt;
  reader::Function out;
  out.id = id;
  out.module = f.module;
  out.address = f.address;
  out.filtered = (f.flags & kArenaFunctionOn) == 0;
  out.always = (f.flags & kArenaFunctionAlways) != 0;
  out.culled = (f.flags & kArenaFunctionCulled) != 0;
  out.tail_exit = (f.flags & kArenaFunctionTailExit) != 0;
  return out;
}

std::vector<std::uint64_t> ArenaView::counts() const {
  if (layout_.counts_offset == 0) return {};
  std::vector<std::uint64_t> sums(function_count() + std::size_t{1});
  const std::uint32_t pages = std::min(load(live().count_pages), layout_.count_capacity);
  const auto* owners = table<CountOwner>(layout_.counts_offset);
  const auto* counters = table<CountPage>(count_pages_offset(layout_));
  for (std::uint32_t page = 0; page < pages; ++page) {
    const std::uint32_t group = load(owners[page].group);
    if (group == 0 || group > kCountGroups) continue;
    const std::size_t first = std::size_t{group - 1} * kCountsPerPage;
    for (std::size_t i = 0; i < kCountsPerPage && first + i < sums.size(); ++i)
      sums[first + i] += load(counters[page].calls[i]);
  }
  return sums;
}

std::uint64_t ArenaView::address_of(std::uint32_t id) const {
  return id <= function_count() ? table<ArenaFunction>(layout_.functions_offset)[id].address : 0;
}

bool ArenaView::is_tail_exit(std::uint32_t id) const {
  return id <= function_count() &&
         (table<ArenaFunction>(layout_.functions_offset)[id].flags & kArenaFunctionTailExit) != 0;
}

namespace {

void put_in_order(std::vector<ArenaBlock>& blocks) {
  std::sort(blocks.begin(), blocks.end(), [](const ArenaBlock& a, const ArenaBlock& b) {
    return a.ticks != b.ticks ? a.ticks < b.ticks : a.sequence < b.sequence;
  });
}

}  // namespace

std::vector<ArenaBlock> ArenaView::blocks() const {
  std::vector<ArenaBlock> found = ring_blocks();
  const std::size_t in_ring = found.size();
  add_kept_blocks(found);
  if (found.size() != in_ring) put_in_order(found);
  return found;
}

std::vector<ArenaBlock> ArenaView::ring_blocks() const {
  const std::uint32_t count = std::min(load(live().blocks_reserved), layout_.block_capacity);
  std::vector<ArenaBlock> found;
  found.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& h = *table<BlockHeader>(layout_.blocks_offset + std::uint64_t{i} * kBlockSize);
    const std::uint64_t generation = load(h.generation);
    const std::uint32_t state = load(h.state);
    if (generation % 2 != 0 || h.thread >= layout_.thread_capacity ||
        (state != static_cast<std::uint32_t>(BlockState::kActive) &&
         state != static_cast<std::uint32_t>(BlockState::kFull)))
      continue;
    found.push_back({i, h.thread, h.sequence, h.ticks, generation});
  }
  put_in_order(found);
  return found;
}

std::span<const Event> ArenaView::read(const ArenaBlock& block, std::vector<Event>& buffer) const {
  const bool kept = block.index >= layout_.block_capacity;
  const std::byte* at = base_ + (kept ? watching_.blocks_offset : layout_.blocks_offset) +
                        std::uint64_t{kept ? block.index - layout_.block_capacity : block.index} * kBlockSize;
  buffer.resize(kEventsPerBlock);
  std::memcpy(buffer.data(), at + kBlockHeaderSize, kEventsPerBlock * sizeof(Event));
  const auto& header = *reinterpret_cast<const BlockHeader*>(at);
  std::size_t settled = kEventsPerBlock;
  if (!kept && layout_.min_duration_ticks != 0 &&
      load(header.state) == static_cast<std::uint32_t>(BlockState::kActive)) {
    // Slots at the end may have been taken back and used again while they were copied. What is the same a second time
    // was there at the moment between the two: no event comes twice, as time goes on, and a slot is empty only if those
    // behind it are (or its hook was interrupted).
    std::atomic_thread_fence(std::memory_order_acquire);
    const auto* events = reinterpret_cast<const Event*>(at + kBlockHeaderSize);
    settled = 0;
    while (settled != kEventsPerBlock && load(events[settled]) == buffer[settled]) ++settled;
  }
  // The copy counts only if the block did not change hands meanwhile.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (load(reinterpret_cast<const BlockHeader*>(at)->generation) != block.generation) return {};
  std::size_t count = settled;
  while (count != 0 && buffer[count - 1] == 0) --count;
  return {buffer.data(), count};
}

}  // namespace karst::collect
