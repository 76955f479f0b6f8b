// SPDX-License-Identifier: MIT
#include "collect/arena/view.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "format/note.h"
#include "format/trace.h"

namespace karst::collect {

using namespace format;

namespace {

constexpr std::uint32_t kLongestPath = 4096;                        // and command line, and options
constexpr std::uint32_t kLongestNote = 4 << 10;                     // a name, a file and a line
constexpr std::uint32_t kLongestName = 64 << 10;                    // as karst_thread_set_name() takes it
constexpr std::uint64_t kMuch = 256 << 10;                          // of blocks, for which a mapping pays
constexpr std::size_t kMostText = std::size_t{4} * kArenaTextSize;  // of one look: libkarst has each text once

std::uint64_t count_pages_offset(const ArenaHeader& h) {
  return (h.counts_offset + std::uint64_t{h.count_capacity} * sizeof(CountOwner) + kBlockSize - 1) / kBlockSize *
         kBlockSize;
}

bool layout_is_sound(const ArenaHeader& h, std::uint64_t size) {
  return h.size <= size && h.module_capacity <= kArenaModules &&
         fits(h.modules_offset, h.module_capacity, sizeof(ArenaModule), size) &&
         fits(h.functions_offset, h.function_capacity, sizeof(ArenaFunction), size) &&
         h.function_capacity <= kMaxFunctionId + 1 && h.function_capacity > 0 && h.thread_capacity <= kArenaThreads &&
         fits(h.threads_offset, h.thread_capacity, sizeof(ArenaThread), size) && h.text_capacity <= kArenaTextSize &&
         fits(h.text_offset, h.text_capacity, 1, size) && h.blocks_offset % kBlockSize == 0 &&
         fits(h.control_offset, 1, sizeof(ArenaControl), size) &&
         fits(h.blocks_offset, h.block_capacity, kBlockSize, size) && h.count_capacity <= kArenaCountPages &&
         fits(h.counts_offset, h.count_capacity, sizeof(CountOwner), size) &&
         fits(count_pages_offset(h), h.count_capacity, sizeof(CountPage), size) &&
         (h.values_offset == 0 || fits(h.values_offset, 1, sizeof(ArenaValues), size));
}

/// The clocks of a process that has started on this machine since it was switched on: before now, and at a rate that
/// some TSC has.
bool start_is_possible(const ClockPair& start) {
  constexpr std::uint64_t kSlackNs = 1'000'000'000;  // the pair's own error, and processors that differ
  constexpr std::uint64_t kFastest = 100;            // ticks a nanosecond; at the slowest the reverse
  const ClockPair now = read_clock_pair();
  if (start.monotonic_raw_ns > now.monotonic_raw_ns || start.ticks > now.ticks + kSlackNs) return false;
  const std::uint64_t ns = now.monotonic_raw_ns - start.monotonic_raw_ns;
  const std::uint64_t ticks = now.ticks > start.ticks ? now.ticks - start.ticks : 0;
  // While the machine sleeps the TSC may go on; this clock does not.
  const std::uint64_t awake = clock_ns(CLOCK_MONOTONIC);  // first, so that it is the smaller one
  const std::uint64_t asleep = clock_ns(CLOCK_BOOTTIME) - awake;
  return ticks / kFastest <= ns + asleep + kSlackNs && ns / kFastest <= ticks + kSlackNs;
}

/// As in ArenaHeader; zero when it cannot be had.
std::array<std::uint8_t, 16> this_boot() {
  std::array<std::uint8_t, 16> id{};
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, text);
  std::erase(text, '-');
  if (text.size() != 2 * id.size()) return id;
  for (std::size_t i = 0; i < id.size(); ++i) std::from_chars(&text[2 * i], &text[2 * i] + 2, id[i], 16);
  return id;
}

std::string bounded_name(const char (&name)[16]) { return {name, strnlen(name, sizeof name)}; }

}  // namespace

class ArenaView::Texts {
 public:
  explicit Texts(const ArenaView& view) : view_(view), capacity_(view.layout_.text_capacity) {
    const std::uint64_t begin = view.layout_.text_offset;
    for (std::uint64_t at = 0; const auto data = view.bytes_.next_data(begin + at, begin + capacity_);) {
      at = data->end - begin;
      all_.resize(at);
      view.bytes_.read(data->begin, &all_[data->begin - begin], data->end - data->begin);
    }
  }
  std::string get(std::uint32_t offset, std::uint32_t size, std::uint32_t longest) {
    if (offset > capacity_ || size > capacity_ - offset || size > longest || size > left_) return {};
    left_ -= size;
    std::string text = offset < all_.size() ? all_.substr(offset, size) : std::string();
    text.resize(size);
    return text;
  }
  std::string values(std::uint32_t spec) {
    std::string text = view_.value_description(spec, left_);
    left_ -= text.size();
    return text;
  }

 private:
  const ArenaView& view_;
  std::uint32_t capacity_;
  std::string all_;
  std::size_t left_ = kMostText;
};

Result<ArenaView> ArenaView::make(ArenaBytes bytes) {
  if (bytes.size() < kBlockSize) return Error{"the process's arena is too small to be one"};
  const auto layout = bytes.get<ArenaHeader>(0);
  if (layout.magic != kArenaMagic) return Error{"the process's arena has no Karst header"};
  if (layout.version != kArenaVersion)
    return Error{"the process runs libkarst with arena version " + std::to_string(layout.version) +
                 ", this karst reads version " + std::to_string(kArenaVersion) + "; use the karst of the same release"};
  if (bytes.size() < layout.size && layout_is_sound(layout, layout.size))
    return Error{"the process's arena is cut: " + std::to_string(bytes.size()) + " of its " +
                 std::to_string(layout.size) + " bytes are there"};
  ArenaView view(std::move(bytes), layout);
  if (!layout_is_sound(layout, view.bytes_.size()) || !view.find_watching())
    return Error{"the process's arena has a damaged header"};
  return view;
}

Result<ArenaView> ArenaView::of_descriptor(int descriptor) {
  auto bytes = ArenaBytes::of_descriptor(descriptor);
  if (!bytes) return bytes.error();
  auto view = make(std::move(*bytes));
  if (view) view->owner_ = sandbox::Credentials::of_owner(view->bytes_.uid(), view->bytes_.gid());
  if (view && view->is_of_this_boot() && !start_is_possible(view->start()))
    return Error{
        "the process's arena says that tracing began at a time that cannot be; it is damaged, or the machine "
        "slept since"};
  return view;
}

Result<ArenaView> ArenaView::of_memory(std::span<const std::byte> bytes) { return make(ArenaBytes::of_memory(bytes)); }

// Functions are entered before they are counted, so one look at each is enough.
void ArenaView::learn_functions() const {
  const std::uint32_t claimed = std::min(now().function_count, layout_.function_capacity - 1);
  if (claimed <= functions_claimed_) return;
  const std::uint64_t known = functions_claimed_ + std::uint64_t{1};
  bytes_.for_each<ArenaFunction>(layout_.functions_offset + known * sizeof(ArenaFunction), claimed + 1 - known,
                                 [&](std::uint64_t i, const ArenaFunction& f) {
                                   if (f.address == 0 && f.module == 0 && f.flags == 0) return;
                                   functions_.resize(known + i);
                                   functions_.push_back(f);
                                 });
  functions_claimed_ = claimed;
}

std::uint32_t ArenaView::function_count() const {
  learn_functions();
  return static_cast<std::uint32_t>(functions_.size() - 1);
}

std::vector<std::uint32_t> ArenaView::all_function_flags() const {
  std::vector<std::uint32_t> flags(function_count() + std::size_t{1});
  bytes_.for_each<ArenaFunction>(layout_.functions_offset, flags.size(),
                                 [&flags](std::uint64_t id, const ArenaFunction& f) { flags[id] = f.flags; });
  return flags;
}

ArenaControl ArenaView::control_now() const { return bytes_.get<ArenaControl>(layout_.control_offset); }

std::vector<reader::Switch> ArenaView::switches() const {
  const ArenaControl c = control_now();
  const std::uint32_t capacity = c.switch_capacity;
  const std::uint64_t offset = c.switches_offset;
  if (capacity == 0 || capacity > kArenaSwitches || !fits(offset, capacity, sizeof(ArenaSwitch), bytes_.size()))
    return {};
  const std::uint64_t count = c.switch_count;
  const std::uint64_t first = count > capacity ? count - capacity : 0;
  std::vector<ArenaSwitch> records(count - first);
  for (std::size_t done = 0; done < records.size();) {
    const std::uint64_t at = (first + done) % capacity;
    const std::size_t part = std::min<std::size_t>(records.size() - done, capacity - at);
    bytes_.read(offset + at * sizeof(ArenaSwitch), &records[done], part * sizeof(ArenaSwitch));
    done += part;
  }
  std::vector<reader::Switch> log;
  log.reserve(records.size());
  for (const ArenaSwitch& at : records)
    log.push_back({at.begin_ticks, at.end_ticks, at.first, at.count, at.on != 0, at.reason});
  // What was overwritten meanwhile, or is being so.
  const std::uint64_t later = std::max(control_now().switch_count, count) + 1;
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

ClockPair ArenaView::start() const {
  return {layout_.start_ticks, layout_.start_monotonic_raw_ns, layout_.start_realtime_ns,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(layout_.start_uncertainty_ticks, 1'000'000'000))};
}

std::optional<ClockPair> ArenaView::later() const {
  const ArenaHeader h = now();
  if (h.clock_readings == 0) return std::nullopt;
  const ArenaClock& c = h.clocks[(h.clock_readings - 1) % 2];
  if (c.ticks <= layout_.start_ticks || c.monotonic_raw_ns <= layout_.start_monotonic_raw_ns) return std::nullopt;
  return ClockPair{c.ticks, c.monotonic_raw_ns, c.realtime_ns,
                   static_cast<std::uint32_t>(std::min<std::uint64_t>(c.uncertainty_ticks, 1'000'000'000))};
}

bool ArenaView::is_of_this_boot() const {
  static const std::array<std::uint8_t, 16> kBoot = this_boot();
  constexpr std::array<std::uint8_t, 16> kUnknown{};
  std::array<std::uint8_t, 16> boot{};
  std::copy(std::begin(layout_.boot_id), std::end(layout_.boot_id), boot.begin());
  return boot == kUnknown ? !bytes_.is_file() : boot == kBoot;
}

reader::Process ArenaView::process_without_functions() const {
  const ArenaHeader now = this->now();
  Texts texts(*this);
  reader::Process p;
  p.pid = now.pid;
  p.parent_pid = now.parent_pid;
  p.flags = (now.began & kBeganOff) != 0 ? static_cast<std::uint32_t>(kProcessOff) : 0U;
  if ((now.began & kBeganLate) != 0) p.flags |= kProcessLate;
  p.start_ticks = layout_.start_ticks;
  p.end_ticks = now.end_ticks;
  p.overwritten_events = now.overwritten_events;
  p.lost_events = now.lost_events;
  p.min_duration_ticks = now.min_duration_ticks;
  p.clock_period_ticks = now.clock_period_ticks;
  p.clock_longest_ticks = now.clock_longest_ticks;
  p.cost.call = now.call_cost;
  p.cost.inside = std::min(now.call_cost_inside, now.call_cost);
  p.cost.off_by = now.call_cost_off_by;
  p.executable = texts.get(now.executable_offset, now.executable_size, kLongestPath);
  p.options = texts.get(now.options_offset, now.options_size, kLongestPath);
  const std::string arguments = texts.get(now.command_line_offset, now.command_line_size, kLongestPath);
  for (std::size_t at = 0; at < arguments.size();) {
    const std::size_t end = std::min(arguments.find('\0', at), arguments.size());
    p.command_line.push_back(arguments.substr(at, end - at));
    at = end + 1;
  }
  const std::string& path = p.executable.empty() && !p.command_line.empty() ? p.command_line[0] : p.executable;
  p.name = path.substr(path.find_last_of('/') + 1);

  p.modules.resize(std::min(now.module_count, layout_.module_capacity));
  for (std::uint32_t i = 0; i < p.modules.size(); ++i) p.modules[i].index = i;
  bytes_.for_each<ArenaModule>(layout_.modules_offset, p.modules.size(), [&](std::uint64_t i, const ArenaModule& m) {
    reader::Module& out = p.modules[i];
    out.bias = m.bias;
    out.text_begin = m.text_begin;
    out.text_end = m.text_end;
    out.loaded_ticks = m.loaded_ticks;
    out.unloaded_ticks = m.unloaded_ticks;
    out.path = texts.get(m.path_offset, m.path_size, kLongestPath);
    out.set_flags(m.flags);
    out.set_identity(std::string(reinterpret_cast<const char*>(m.build_id),
                                 std::min<std::size_t>(m.build_id_size, sizeof m.build_id)));
  });

  const std::uint32_t thread_count = std::min(now.thread_count, layout_.thread_capacity);
  bytes_.for_each<ArenaThread>(layout_.threads_offset, thread_count, [&](std::uint64_t i, const ArenaThread& t) {
    if (t.state == static_cast<std::uint32_t>(ThreadLife::kFree) ||
        t.state == static_cast<std::uint32_t>(ThreadLife::kClaimed))
      return;
    reader::Thread out;
    out.index = static_cast<std::uint32_t>(i);
    out.tid = t.tid;
    out.exited = t.state == static_cast<std::uint32_t>(ThreadLife::kExited);
    out.joined_ticks = t.joined_ticks;
    out.exited_ticks = t.exited_ticks;
    out.overwritten_events = t.overwritten_events;
    p.overwritten_events += t.overwritten_events;
    out.lost_events = t.lost_events;
    out.name = texts.get(t.given_name, t.given_name_size, kLongestName);
    if (out.name.empty()) out.name = bounded_name(t.name);
    p.threads.push_back(std::move(out));
  });
  return p;
}

namespace {

/// `text` is a name, a source file, a line and perhaps values, with a NUL between each two.
void name_by_text(const std::string& text, reader::Function& f) {
  const std::size_t name_end = std::min(text.find('\0'), text.size());
  f.name = f.link_name = name_end != 0 ? text.substr(0, name_end) : "name#" + std::to_string(f.id);
  if (name_end == text.size()) return;
  const std::size_t file_end = std::min(text.find('\0', name_end + 1), text.size());
  f.file = text.substr(name_end + 1, file_end - name_end - 1);
  if (file_end == text.size()) return;
  std::from_chars(text.data() + file_end + 1, text.data() + text.size(), f.line);
  const std::size_t line_end = text.find('\0', file_end + 1);
  if (line_end != std::string::npos) f.values = text.substr(line_end + 1);
}

template <typename Texts>
std::optional<reader::Function> make_function(std::uint32_t id, const ArenaFunction& f, const reader::Process& process,
                                              Texts& texts) {
  if (f.module >= process.modules.size()) return std::nullopt;
  reader::Function out;
  out.id = id;
  out.module = f.module;
  out.address = f.address;
  out.filtered = (f.flags & kArenaFunctionOn) == 0;
  out.always = (f.flags & kArenaFunctionAlways) != 0;
  out.culled = (f.flags & kArenaFunctionCulled) != 0;
  out.tail_exit = (f.flags & kArenaFunctionTailExit) != 0;
  out.tail_return = out.tail_exit && (f.flags & kArenaFunctionTailReturn) != 0;
  out.note = (f.flags & kArenaFunctionNote) != 0;
  out.late = (f.flags & kArenaFunctionLate) != 0;
  out.values = texts.values(value_spec_of(f.flags));
  if (is_text_address(f.address))
    name_by_text(texts.get(text_address_offset(f.address), text_address_size(f.address), kLongestNote), out);
  return out;
}

}  // namespace

reader::Process ArenaView::process() const {
  reader::Process p = process_without_functions();
  const std::uint32_t count = function_count();
  p.functions.resize(count + std::size_t{1});
  Texts texts(*this);
  bytes_.for_each<ArenaFunction>(layout_.functions_offset, p.functions.size(),
                                 [&](std::uint64_t id, const ArenaFunction& f) {
                                   if (id == 0) return;
                                   if (auto made = make_function(static_cast<std::uint32_t>(id), f, p, texts))
                                     p.functions[id] = std::move(*made);
                                 });
  for (std::uint32_t id = 1; id <= count; ++id)
    if (p.functions[id].id == 0) p.flags |= kProcessDamaged;
  return p;
}

std::optional<reader::Function> ArenaView::function(std::uint32_t id, const reader::Process& process) const {
  Texts texts(*this);
  return make_function(id, bytes_.get<ArenaFunction>(layout_.functions_offset + id * sizeof(ArenaFunction)), process,
                       texts);
}

std::vector<std::uint64_t> ArenaView::counts() const {
  if (layout_.counts_offset == 0) return {};
  std::vector<std::uint64_t> sums(function_count() + std::size_t{1});
  const std::uint64_t pages = count_pages_offset(layout_);
  CountPage counters;
  bytes_.for_each<CountOwner>(
      layout_.counts_offset, std::min(now().count_pages, layout_.count_capacity),
      [&](std::uint64_t page, const CountOwner& owner) {
        if (owner.group == 0 || owner.group > kCountGroups) return;
        const std::size_t first = std::size_t{owner.group - 1} * kCountsPerPage;
        if (first >= sums.size() || !bytes_.read(pages + page * sizeof counters, &counters, sizeof counters)) return;
        for (std::size_t i = 0; i < kCountsPerPage && first + i < sums.size(); ++i)
          sums[first + i] += counters.calls[i];
      });
  return sums;
}

std::string ArenaView::value_description(std::uint32_t spec, std::size_t most) const {
  const std::uint64_t at = layout_.values_offset;
  if (spec == 0 || spec > kMostValueSpecs || at == 0) return {};
  const auto wanted =
      bytes_.get<ArenaValueSpec>(at + offsetof(ArenaValues, specs) + (spec - 1) * sizeof(ArenaValueSpec));
  const std::uint32_t offset = wanted.description;
  const std::uint32_t size = wanted.description_size;
  if (offset > kMostValueText || size > kMostValueText - offset || size > most) return {};
  std::string text(size, '\0');
  return bytes_.read(at + offsetof(ArenaValues, text) + offset, text.data(), size) ? text : std::string();
}

std::uint64_t ArenaView::address_of(std::uint32_t id) const {
  if (id >= functions_.size()) learn_functions();
  return id < functions_.size() ? functions_[id].address : 0;
}

bool ArenaView::is_tail_exit(std::uint32_t id) const {
  if (id >= functions_.size()) learn_functions();
  return id < functions_.size() && (functions_[id].flags & kArenaFunctionTailExit) != 0;
}

std::uint32_t ArenaView::tail_owner(std::uint32_t id) const {
  if (!is_tail_exit(id)) return 0;
  for (; owners_known_ < functions_.size(); ++owners_known_) {
    const ArenaFunction& f = functions_[owners_known_];
    if ((f.flags & kArenaFunctionTailExit) == 0)
      owners_.try_emplace(f.address, static_cast<std::uint32_t>(owners_known_));
  }
  const auto owner = owners_.find(functions_[id].address);
  return owner != owners_.end() ? owner->second : 0;
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
  const std::uint64_t begin = layout_.blocks_offset;
  const std::uint64_t end = begin + std::uint64_t{std::min(now().blocks_reserved, layout_.block_capacity)} * kBlockSize;
  std::vector<ArenaBlock> found;
  for (std::uint64_t at = begin; at < end;) {
    const auto data = bytes_.next_data(at, end);
    if (!data) break;
    if (data->end - data->begin > kMuch) bytes_.expect_much();
    for (at = data->begin / kBlockSize * kBlockSize; at < data->end; at += kBlockSize) {
      BlockHeader h;
      bytes_.read_data(at, &h, sizeof h);
      if (h.generation % 2 != 0 || h.thread >= layout_.thread_capacity ||
          (h.state != static_cast<std::uint32_t>(BlockState::kActive) &&
           h.state != static_cast<std::uint32_t>(BlockState::kFull)))
        continue;
      ArenaBlock& block = found.emplace_back();
      block.index = static_cast<std::uint32_t>((at - begin) / kBlockSize);
      block.thread = h.thread;
      block.sequence = h.sequence;
      block.ticks = h.ticks;
      block.generation = h.generation;
      block.left = h.state == static_cast<std::uint32_t>(BlockState::kFull);
    }
  }
  put_in_order(found);
  return found;
}

std::uint32_t ArenaView::block_capacity() const { return std::min(now().block_capacity, layout_.block_capacity); }

std::span<const Event> ArenaView::read(const ArenaBlock& block, std::vector<Event>& buffer) const {
  static_assert(kBlockHeaderSize % sizeof(Event) == 0);
  constexpr std::size_t kHeaderWords = kBlockHeaderSize / sizeof(Event);
  const bool kept = block.index >= layout_.block_capacity;
  const std::uint64_t at = (kept ? watching_.blocks_offset : layout_.blocks_offset) +
                           std::uint64_t{kept ? block.index - layout_.block_capacity : block.index} * kBlockSize;
  buffer.resize(kBlockSize / sizeof(Event));
  bytes_.read_data(at, buffer.data(), kBlockSize);
  BlockHeader header;
  std::memcpy(&header, buffer.data(), sizeof header);
  const std::span<const Event> events = std::span(buffer).subspan(kHeaderWords);
  std::size_t settled = kEventsPerBlock;
  if (!kept && layout_.min_duration_ticks != 0 && header.state == static_cast<std::uint32_t>(BlockState::kActive)) {
    // Slots at the end may have been taken back and used again while they were copied. What is the same a second time
    // was there at the moment between the two: no event comes twice, as time goes on, and a slot is empty only if those
    // behind it are (or its hook was interrupted).
    std::atomic_thread_fence(std::memory_order_acquire);
    Event again[kEventsPerBlock];
    bytes_.read_data(at + kBlockHeaderSize, again, sizeof again);
    settled = static_cast<std::size_t>(std::mismatch(events.begin(), events.end(), again).first - events.begin());
  }
  // The copy counts only if the block did not change hands since it was listed.
  std::atomic_thread_fence(std::memory_order_acquire);
  std::uint64_t generation = 0;
  bytes_.read_data(at, &generation, sizeof generation);
  if (header.generation != block.generation || generation != block.generation) return {};
  std::size_t count = settled;
  while (count != 0 && events[count - 1] == 0) --count;
  return events.first(count).subspan(std::min<std::size_t>(block.skip, count));
}

}  // namespace karst::collect
