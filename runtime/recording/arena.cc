// SPDX-License-Identifier: MIT
// Makes the arena, in a forked child anew, and the tables in it; arena_memory.cc has its memory, arena_blocks.cc the
// blocks.
#include "runtime/recording/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "arch/page.h"
#include "runtime/system/memory.h"
#include "runtime/system/memory_group.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace karst::runtime {

using namespace format;

Arena g_arena;

extern "C" {
__attribute__((visibility("hidden"))) ArenaFunction* karst_functions;
}

namespace {

constexpr std::uint32_t kThreadsPerPage = kBlockSize / sizeof(ArenaThread);

/// Under vm.overcommit_memory=2 memory counts when it is mapped, not when it is used.
bool mapping_is_free() {
  const long fd = sys::open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  char mode = '0';
  sys::read(static_cast<int>(fd), &mode, 1);
  sys::close(static_cast<int>(fd));
  return mode != '2';
}

/// Which start of the machine this is, so that readers know whether clocks that they read go on from ours.
void note_boot(ArenaHeader& h) {
  char text[36];
  const long fd = sys::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const long n = sys::read(static_cast<int>(fd), text, sizeof text);
  sys::close(static_cast<int>(fd));
  std::uint32_t digits = 0;
  for (long i = 0; i < n && digits < 2 * sizeof h.boot_id; ++i) {
    const char c = text[i];
    if (c == '-') continue;
    const auto value = static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    h.boot_id[digits / 2] = static_cast<std::uint8_t>(h.boot_id[digits / 2] << 4 | (value & 15));
    ++digits;
  }
}

/// What readers are told of how much there is; several threads may.
void raise(std::uint32_t& word, std::uint32_t to) {
  for (std::uint32_t is = load(word); is < to; is = load(word))
    if (exchange_if(word, is, to)) return;
}

/// Trampolines and stubs must lie within 2 GiB of a module's code. Memory is mapped right below the lowest library, so
/// a large arena would take all of that: it is asked for further down. 0: anywhere; the kernel may choose another
/// place.
std::uintptr_t place_of_mapping(std::uint64_t size) {
  constexpr std::uint64_t kSmall = std::uint64_t{256} << 20;
  constexpr std::uint64_t kAway = std::uint64_t{16} << 30;
  const auto here = align_down(reinterpret_cast<std::uintptr_t>(&place_of_mapping), arch::kPage);
  const std::uint64_t whole = align_up(size, arch::kPage);
  return size <= kSmall || here < 2 * (kAway + whole) ? 0 : here - kAway - whole;
}

/// A control page as it is before the first request.
ArenaControl first_control(std::uint32_t enabled, std::uint32_t new_functions, std::uint64_t switches_offset) {
  ArenaControl c{};
  c.enabled = enabled;
  c.new_functions = new_functions;
  c.cost_ppm = ~std::uint32_t{0};
  c.switches_offset = switches_offset;
  c.switch_capacity = kArenaSwitches;
  return c;
}

}  // namespace

const char* Arena::create(const Options& options) {
  find_memory_group();
  ArenaHeader layout{};
  layout.magic = kArenaMagic;
  layout.version = kArenaVersion;
  layout.state = static_cast<std::uint32_t>(ArenaState::kStarting);
  layout.module_capacity = kArenaModules;
  layout.function_capacity = kMaxFunctionId + 1;
  layout.thread_capacity = kArenaThreads;
  layout.text_capacity = kArenaTextSize;
  layout.block_capacity = static_cast<std::uint32_t>(options.memory / kBlockSize);
  std::uint64_t end = kBlockSize;
  const auto place = [&end](std::uint64_t size) {
    const std::uint64_t offset = end;
    end = align_up(end + size, kBlockSize);
    return offset;
  };
  layout.control_offset = place(sizeof(ArenaControl));
  const std::uint64_t switches_offset = place(sizeof(ArenaSwitch) * std::uint64_t{kArenaSwitches});
  // What a forked child needs of its parent's arena comes last: the tables alone are mapped in it.
  layout.threads_offset = place(sizeof(ArenaThread) * std::uint64_t{kArenaThreads});
  layout.blocks_offset = place(std::uint64_t{layout.block_capacity} * kBlockSize);
  if (options.count) {
    layout.count_capacity = kArenaCountPages;
    layout.counts_offset = place(sizeof(CountOwner) * std::uint64_t{kArenaCountPages});
    place(sizeof(CountPage) * std::uint64_t{kArenaCountPages});
  }
  ArenaWatching watching{};
  if (!options.count) {
    watching.slots_offset = place(sizeof(std::uint64_t) * std::uint64_t{kWatchSlots});
    watching.moments_offset = place(sizeof(ArenaMoment) * std::uint64_t{kWatchSlots});
    watching.candidates_offset = place(sizeof(ArenaCandidate) * std::uint64_t{kWatchCandidates});
    watching.block_capacity = static_cast<std::uint32_t>(options.kept_memory / kBlockSize);
    watching.blocks_offset = place(std::uint64_t{watching.block_capacity} * kBlockSize);
  }
  layout.modules_offset = place(sizeof(ArenaModule) * kArenaModules);
  layout.functions_offset = place(sizeof(ArenaFunction) * std::uint64_t{layout.function_capacity});
  if (!options.count) {
    layout.watching_offset = place(sizeof(ArenaWatching));
    watching.rules_offset = place(sizeof(ArenaWatchRule) * std::uint64_t{kWatchRules});
    watching.watches_offset = place(sizeof(ArenaWatch) * std::uint64_t{kWatches});
    layout.values_offset = place(sizeof(ArenaValues));
  }
  layout.text_offset = place(kArenaTextSize);
  layout.size = end;

  keep_file_name(options.file);
  in_cores_ = options.core;
  note_boot(layout);
  if (const char* why = open_memory(layout.size)) return why;
  const long mapped = sys::mmap(place_of_mapping(layout.size), layout.size, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_NORESERVE, descriptor_.number());
  if (sys::failed(mapped)) {
    descriptor_.close();
    return "no memory can be mapped for the trace";
  }
  base_ = static_cast<std::uintptr_t>(mapped);
  blocks_ = base_ + layout.blocks_offset;
  layout_ = layout;
  watching_layout_ = watching;
  switches_offset_ = switches_offset;
  own_size_ = layout.modules_offset;
  capacity_ = layout.block_capacity;
  text_real_ = 0;
  advise_mapping();

  static_assert(kBlockSize >= sizeof(ArenaHeader));
  bool enough = reserve(0, layout.control_offset + sizeof(ArenaControl));  // one lies behind the other
  if (enough) {
    copy(reinterpret_cast<void*>(base_), &layout, sizeof layout);
    control() = first_control(options.off ? 0 : 1, 1, switches_offset);
    if (layout.watching_offset != 0) {
      enough = reserve(layout.watching_offset, sizeof watching);
      if (enough) copy(reinterpret_cast<void*>(base_ + layout.watching_offset), &watching, sizeof watching);
    }
    enough = enough && reserve_blocks(options.prefault ? layout.block_capacity : 1);
  }
  if (!enough) {
    sys::munmap(reinterpret_cast<void*>(base_), layout.size);
    descriptor_.close();
    base_ = 0;
    return "there is not enough memory for the trace";
  }
  karst_functions = functions();
  mapping_is_free_ = mapping_is_free();
  remember();
  return nullptr;
}

const char* Arena::create_in_child() {
  ArenaHeader h = kept_;
  h.began = kept_control_.enabled == 0 ? std::uint32_t{kBeganOff} : 0U;
  h.end_ticks = 0;
  h.clock_readings = 0;
  h.thread_count = 0;
  h.blocks_reserved = 0;
  h.live_threads = 0;
  h.hand = 0;
  h.reserving_ticks = 0;
  h.overwritten_events = 0;
  h.lost_events = 0;
  h.threads_total = 0;
  h.count_pages = 0;
  h.uncounted_calls = 0;
  h.text_used = text_bottom_;
  ArenaControl c = first_control(kept_control_.enabled, kept_control_.new_functions, switches_offset_);
  c.budget_ppm = kept_control_.budget_ppm;
  c.blocking = kept_control_.blocking;
  ArenaWatching w{};
  if (h.watching_offset != 0) {
    w = *at<ArenaWatching>(h.watching_offset);
    w.slots_offset = watching_layout_.slots_offset;
    w.moments_offset = watching_layout_.moments_offset;
    w.candidates_offset = watching_layout_.candidates_offset;
    w.rules_offset = watching_layout_.rules_offset;
    w.watches_offset = watching_layout_.watches_offset;
    w.blocks_offset = watching_layout_.blocks_offset;
    w.block_capacity = watching_layout_.block_capacity;
    w.watch_count = w.applied < kWatches ? w.applied : kWatches;  // as the code is that the child has
    w.rule_count = w.rule_count < kWatchRules ? w.rule_count : kWatchRules;
    w.applied = w.slots_used = w.blocks_used = w.refused = 0;
    w.without_candidate = w.too_deep = 0;
  }
  descriptor_.close();
  if (const char* why = open_memory(h.size)) return why;
  const auto old = [this](std::uint64_t offset) { return reinterpret_cast<const void*>(base_ + offset); };
  if (h.watching_offset != 0 && (!put(h.watching_offset, &w, sizeof w) ||
                                 !put(w.rules_offset, old(w.rules_offset), w.rule_count * sizeof(ArenaWatchRule)) ||
                                 !put(w.watches_offset, old(w.watches_offset), w.watch_count * sizeof(ArenaWatch)))) {
    descriptor_.close();
    return "there is not enough memory for the trace";
  }
  if (!put(0, &h, sizeof h) || !put(h.control_offset, &c, sizeof c) ||
      !put(h.modules_offset, old(h.modules_offset), h.module_count * sizeof(ArenaModule)) ||
      !put(h.functions_offset, old(h.functions_offset), (h.function_count + 1ULL) * sizeof(ArenaFunction)) ||
      !put(h.text_offset, old(h.text_offset), h.text_used) || !put_values()) {
    descriptor_.close();
    return "there is not enough memory for the trace";
  }
  stand_in();
  // What the program has put into the place since the fork stays its own.
  const std::uintptr_t place = stands_in_ ? base_ : 0;
  const long mapped = sys::mmap(place, h.size, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_NORESERVE | (place != 0 ? MAP_FIXED : 0), descriptor_.number());
  if (sys::failed(mapped)) {
    descriptor_.close();
    return "no memory can be mapped for the trace";
  }
  if (place == 0) sys::munmap(reinterpret_cast<void*>(base_ + own_size_), h.size - own_size_);
  stands_in_ = false;
  base_ = static_cast<std::uintptr_t>(mapped);
  blocks_ = base_ + h.blocks_offset;
  capacity_ = h.block_capacity;
  text_real_ = 0;
  karst_functions = functions();
  advise_mapping();
  advise_dump(0, sizeof h);
  advise_dump(h.control_offset, sizeof c);
  advise_dump(h.modules_offset, h.module_count * sizeof(ArenaModule));
  advise_dump(h.functions_offset, (h.function_count + 1ULL) * sizeof(ArenaFunction));
  advise_dump(h.text_offset, h.text_used);
  if (h.watching_offset != 0) {
    advise_dump(h.watching_offset, sizeof w);
    advise_dump(w.rules_offset, w.rule_count * sizeof(ArenaWatchRule));
    advise_dump(w.watches_offset, w.watch_count * sizeof(ArenaWatch));
  }
  if (!reserve_blocks(1)) return "there is not enough memory for the trace";
  // Modules that the parent has unloaded since the fork are still here.
  for (std::uint32_t i = 0; i < h.module_count; ++i)
    if (modules()[i].unloaded_ticks > remembered_at_) modules()[i].unloaded_ticks = 0;
  remember();
  return nullptr;
}

/// What values are wanted in the parent, into the child's arena. Their counts are the requester's, who may be hostile.
bool Arena::put_values() const {
  if (layout_.values_offset == 0) return true;
  const auto* values = at<ArenaValues>(layout_.values_offset);
  const std::uint32_t specs = load(values->count) < kMostValueSpecs ? load(values->count) : kMostValueSpecs;
  const std::uint32_t text = load(values->text_used) < kMostValueText ? load(values->text_used) : kMostValueText;
  if (specs == 0) return true;
  return put(layout_.values_offset, values, offsetof(ArenaValues, specs) + specs * sizeof(ArenaValueSpec)) &&
         put(layout_.values_offset + offsetof(ArenaValues, text), values->text, text);
}

void Arena::let_go() {
  descriptor_.close();
  store(function_count_, 0U);  // notes have ids still, of functions that are not here
  if (base_ == 0) return;
  sys::munmap(reinterpret_cast<void*>(base_ + own_size_), layout_.size - own_size_);
  if (stands_in_ || !mapping_is_free_) return;
  sys::munmap(reinterpret_cast<void*>(base_), own_size_);
  stand_in();
}

void Arena::stand_in() {
  // What the parent had is not here.
  store(thread_count_, 0U);
  store(blocks_reserved_, 0U);
  store(reserving_, 0U);
  store(blocks_dumped_, 0U);
  store(capacity_, 0U);
  store(count_pages_, 0U);
  if (stands_in_ || !mapping_is_free_) return;
  const long got = sys::mmap(base_, own_size_, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1);
  if (sys::failed(got)) return;
  stands_in_ = static_cast<std::uintptr_t>(got) == base_;
  if (!stands_in_) sys::munmap(reinterpret_cast<void*>(got), own_size_);  // a kernel that does not know the flag
}

bool Arena::reserve_functions(std::uint32_t count) {
  const std::uint32_t used = function_count_ + 1;
  return count <= layout_.function_capacity - used &&
         reserve(layout_.functions_offset + used * sizeof(ArenaFunction), count * sizeof(ArenaFunction));
}

bool Arena::reserve_switches(std::uint32_t first, std::uint32_t count) {
  return count == 0 || reserve(switches_offset_ + std::uint64_t{first} * sizeof(ArenaSwitch),
                               std::uint64_t{count} * sizeof(ArenaSwitch));
}

bool Arena::reserve_modules(std::uint32_t count) {
  const std::uint32_t used = module_count_;
  return count <= kArenaModules - used &&
         reserve(layout_.modules_offset + used * sizeof(ArenaModule), count * sizeof(ArenaModule));
}

CountPage* Arena::count_page(std::uint32_t index) {
  const std::uint64_t pages = layout_.counts_offset + sizeof(CountOwner) * std::uint64_t{layout_.count_capacity};
  return at<CountPage>(align_up(pages, kBlockSize)) + index;
}

bool Arena::reserve_count_page(std::uint32_t index) {
  const auto offset_of = [this](const void* p) { return reinterpret_cast<std::uintptr_t>(p) - base_; };
  return reserve(offset_of(count_owners() + index), sizeof(CountOwner)) &&
         reserve(offset_of(count_page(index)), sizeof(CountPage));
}

std::uint32_t Arena::claim_count_page() {
  std::uint32_t index = 0;
  do {
    index = load(count_pages_);
    if (index >= layout_.count_capacity || !reserve_count_page(index)) return kNoCountPage;
  } while (!exchange_if(count_pages_, index, index + 1));
  raise(header().count_pages, index + 1);
  return index;
}

void Arena::set_function_count(std::uint32_t count) {
  store(function_count_, count);
  store(header().function_count, count);
}

void Arena::set_module_count(std::uint32_t count) {
  store(module_count_, count);
  store(header().module_count, count);
}

void Arena::impose_layout(ArenaHeader& h) const {
  h.size = layout_.size;
  h.modules_offset = layout_.modules_offset;
  h.functions_offset = layout_.functions_offset;
  h.threads_offset = layout_.threads_offset;
  h.text_offset = layout_.text_offset;
  h.blocks_offset = layout_.blocks_offset;
  h.control_offset = layout_.control_offset;
  h.counts_offset = layout_.counts_offset;
  h.watching_offset = layout_.watching_offset;
  h.values_offset = layout_.values_offset;
  h.module_capacity = layout_.module_capacity;
  h.function_capacity = layout_.function_capacity;
  h.thread_capacity = layout_.thread_capacity;
  h.text_capacity = layout_.text_capacity;
  h.block_capacity = layout_.block_capacity;
  h.count_capacity = layout_.count_capacity;
  h.module_count = module_count_;
  h.function_count = function_count_;
}

std::uint32_t Arena::add_text(const char* text, std::uint32_t size) {
  const std::uint32_t offset = take_text(size);
  if (offset != 0) copy(reinterpret_cast<void*>(base_ + layout_.text_offset + offset), text, size);
  return offset;
}

std::uint32_t Arena::take_text(std::uint32_t size) {
  std::uint32_t offset = 0;
  do {
    offset = load(text_bottom_);
    if (size == 0 || size > kArenaTextSize - offset) return 0;
  } while (!exchange_if(text_bottom_, offset, offset + size));
  raise(header().text_used, offset + size);
  // Texts are short: most lie in a page that is real already. All before `real` is.
  const std::uint32_t real = load(text_real_);
  if (offset + size <= real) return offset;
  if (!reserve(layout_.text_offset + real, offset + size - real)) return 0;
  raise(text_real_, static_cast<std::uint32_t>(align_up(offset + size, kBlockSize)));
  return offset;
}

std::uint32_t Arena::claim_thread() {
  ArenaHeader& h = header();
  const auto claim = [this](std::uint32_t i, ThreadLife from) {
    return exchange_if(thread(i).state, static_cast<std::uint32_t>(from),
                       static_cast<std::uint32_t>(ThreadLife::kClaimed));
  };
  for (;;) {
    const std::uint32_t used = load(thread_count_);
    if (used >= kArenaThreads) break;
    if (used % kThreadsPerPage == 0 &&
        !reserve(layout_.threads_offset + used * sizeof(ArenaThread), sizeof(ArenaThread)))
      break;
    if (!exchange_if(thread_count_, used, used + 1)) continue;
    raise(h.thread_count, used + 1);
    if (claim(used, ThreadLife::kFree)) return used;
  }
  // Threads' histories go in about the order in which the threads came: begin where the last search ended.
  static std::uint32_t s_next;
  const std::uint32_t used = load(thread_count_);
  const std::uint32_t first = load(s_next);
  for (std::uint32_t n = 0; n < used; ++n) {
    const std::uint32_t i = (first + n) % used;
    ArenaThread& t = thread(i);
    if (load(t.state) == static_cast<std::uint32_t>(ThreadLife::kExited) && history_blocks(t) == 0 &&
        load(t.kept_blocks) == 0 && claim(i, ThreadLife::kExited)) {
      store(s_next, i + 1);
      return i;
    }
  }
  return kNoThread;
}

}  // namespace karst::runtime
