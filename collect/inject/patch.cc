#include "collect/inject/patch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arch/page.h"
#include "collect/inject/memory.h"
#include "collect/inject/threads.h"
#include "collect/inject/tracee.h"
#include "format/patch_table.h"
#include "format/sled_note.h"

namespace karst::collect {
namespace {

using namespace format;
using SteadyClock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::uint64_t kDeepestStack = 16 << 20;        // bytes that are looked through
constexpr std::chrono::microseconds kChangeLasts{1000};  // then no further function is begun
constexpr int kMostStops = 200;                          // while they bring something forward
constexpr int kIdleStops = 20;                           // while they do not
constexpr useconds_t kBetweenStops = 10'000;             // microseconds

/// Bytes that are written over others.
struct Edit {
  std::uint64_t address = 0;
  std::uint8_t size = 0;
  unsigned char before[8] = {};
  unsigned char after[8] = {};

  bool overlaps(const Edit& other) const {
    return address < other.address + other.size && other.address < address + size;
  }
  bool has_inside(std::uint64_t at) const { return at > address && at < address + size; }
  bool is_in_one_page() const { return address / arch::kPage == (address + size - 1) / arch::kPage; }
};

using Edits = std::vector<Edit>;

/// One function's, one probe's, or one detour's.
struct Change {
  enum class What : std::uint8_t { kFunction, kProbe, kDetour };
  What what = What::kFunction;
  Edits edits;
  std::uint64_t semaphore = 0;  ///< of a probe: where 16 bits count who listens; 0: nowhere
  std::uint64_t function = 0;   ///< of a function or a detour: where it begins
  std::uint64_t stub = 0;       ///< of a detour: its NOP
  std::string name;             ///< of a detour

  bool is_detour() const { return what == What::kDetour; }
  bool overlaps(const Change& other) const {
    return std::any_of(edits.begin(), edits.end(), [&](const Edit& a) {
      return std::any_of(other.edits.begin(), other.edits.end(), [&](const Edit& b) { return a.overlaps(b); });
    });
  }
};

/// Reads numbers out of a table that may say anything.
class Table {
 public:
  static std::optional<Table> read(const ForeignMemory& memory, const PatchedModule& module) {
    Table t;
    if (module.table_size < sizeof(PatchTable) || module.table_size > kMostPatchTable) return std::nullopt;
    t.bytes_.resize(module.table_size);
    if (!memory.read(module.table, t.bytes_.data(), t.bytes_.size())) return std::nullopt;
    std::memcpy(&t.head_, t.bytes_.data(), sizeof t.head_);
    const PatchTable& h = t.head_;
    t.sleds_ = sizeof h + std::uint64_t{h.probes} * sizeof(PatchProbe);
    t.jumps_ = t.sleds_ + std::uint64_t{h.sleds} * sizeof(PatchSled);
    t.fixups_ = t.jumps_ + std::uint64_t{h.jumps} * sizeof(PatchJump);
    t.detours_ = t.fixups_ + std::uint64_t{h.fixups} * sizeof(PatchFixup);
    const std::uint64_t code = t.detours_ + std::uint64_t{h.detours} * sizeof(PatchDetour);
    if (h.magic != kPatchTableMagic || h.version != kPatchTableVersion || code > t.bytes_.size() ||
        h.code_size > t.bytes_.size() - code)
      return std::nullopt;
    t.text_ = code + h.code_size;
    for (std::uint32_t i = 0; i < h.sleds; ++i)
      if (const auto sled = t.get<PatchSled>(t.sleds_, i); sled.kind == static_cast<std::uint32_t>(SledKind::kEntry))
        t.entries_.push_back(sled.function);
    return t;
  }

  std::uint32_t jumps() const { return head_.jumps; }
  PatchJump jump(std::uint32_t i) const { return get<PatchJump>(jumps_, i); }
  std::uint32_t fixups() const { return head_.fixups; }
  PatchFixup fixup(std::uint32_t i) const { return get<PatchFixup>(fixups_, i); }

  /// What the jump is of, in the process.
  Change change_of(const PatchJump& jump, const PatchedModule& module) const {
    Change change;
    if (jump.function < head_.functions) {
      if (jump.function < entries_.size()) change.function = module.bias + entries_[jump.function];
      return change;
    }
    std::uint32_t number = jump.function - head_.functions;
    if (number < head_.probes) {
      change.what = Change::What::kProbe;
      const auto semaphore = get<PatchProbe>(sizeof head_, number).semaphore;
      if (semaphore != 0) change.semaphore = module.bias + semaphore;
      return change;
    }
    change.what = Change::What::kDetour;
    number -= head_.probes;
    if (number >= head_.detours) return change;
    const auto detour = get<PatchDetour>(detours_, number);
    change.function = module.bias + detour.function;
    change.stub = module.stubs + detour.offset;
    constexpr std::size_t kMostName = 80;
    if (detour.name < bytes_.size() - text_) {
      const char* const name = bytes_.data() + text_ + detour.name;
      change.name.assign(name, strnlen(name, std::min(kMostName, bytes_.size() - text_ - detour.name)));
    }
    return change;
  }

 private:
  template <typename T>
  T get(std::uint64_t begin, std::uint32_t i) const {
    T value{};
    std::memcpy(&value, bytes_.data() + begin + std::uint64_t{i} * sizeof value, sizeof value);
    return value;
  }

  std::vector<char> bytes_;
  PatchTable head_{};
  std::uint64_t sleds_ = 0, jumps_ = 0, fixups_ = 0, detours_ = 0, text_ = 0;
  std::vector<std::uint64_t> entries_;  // ELF addresses of functions, by number
};

bool is_code(const std::vector<Mapping>& mappings, const Edit& edit) {
  return std::any_of(mappings.begin(), mappings.end(), [&](const Mapping& m) {
    return m.rights.starts_with("r-x") && !m.path.empty() && edit.address >= m.begin &&
           edit.address + edit.size <= m.end;
  });
}

/// None: the jump makes no sense.
std::optional<Edit> edit_of(const PatchJump& j, const PatchedModule& module, bool back) {
  if (j.size == 0 || j.size > sizeof j.before || (j.field != kPatchNoField && (j.size < 4 || j.field > j.size - 4)))
    return std::nullopt;
  Edit edit;
  edit.address = module.bias + j.address;
  edit.size = j.size;
  std::memcpy(edit.before, j.before, j.size);
  std::memcpy(edit.after, j.after, j.size);
  if (j.field != kPatchNoField) {
    const auto distance = static_cast<std::uint32_t>(module.stubs + j.offset - (edit.address + j.field + 4U));
    std::memcpy(edit.after + j.field, &distance, sizeof distance);
  }
  if (back) std::swap(edit.before, edit.after);
  return edit;
}

/// What there is of all modules with stubs.
struct Changes {
  std::vector<Change> all;
  std::vector<std::uint64_t> returns;  ///< in order: code to which stubs go back
};

/// What the process says is not believed further than its own code goes.
Changes changes_of(const ForeignMemory& memory, const std::vector<Mapping>& mappings, bool back) {
  PatchedModules modules{};
  for (const Mapping& m : mappings) {
    if (m.offset != 0 || !fs::path(m.path).filename().string().starts_with("libkarst.so")) continue;
    const auto runtime = ForeignModule::of(memory, m.begin);
    const std::uint64_t at = runtime ? runtime->find(memory, "karst_patched_modules") : 0;
    if (at != 0) memory.read(at, &modules, sizeof modules);
    break;
  }
  Changes found;
  if (modules.version != kPatchTableVersion) return found;
  std::uint64_t size = 0;
  for (std::uint32_t i = 0; i < std::min(modules.count, kMostPatchedModules); ++i) {
    size += std::min(modules.modules[i].table_size, kMostPatchTable + 1);
    if (size > kMostPatchTable) break;  // it lies
    const auto table = Table::read(memory, modules.modules[i]);
    if (!table) continue;
    std::uint32_t function = ~0U;
    for (std::uint32_t n = 0; n < table->jumps(); ++n) {
      const PatchJump jump = table->jump(n);
      const auto edit = edit_of(jump, modules.modules[i], back);
      if (!edit || !is_code(mappings, *edit)) continue;
      if (function != jump.function) found.all.push_back(table->change_of(jump, modules.modules[i]));
      function = jump.function;
      found.all.back().edits.push_back(*edit);
    }
    for (std::uint32_t n = 0; n < table->fixups(); ++n)
      found.returns.push_back(modules.modules[i].bias + table->fixup(n).target);
  }
  std::sort(found.returns.begin(), found.returns.end());
  return found;
}

/// All threads of a process, stopped until this goes.
class Stopped {
 public:
  explicit Stopped(pid_t pid) {
    std::set<pid_t> known;
    for (bool more = true; more && all_;) {
      more = false;
      std::vector<Tracee> fresh;
      for (const pid_t thread : threads_of(pid)) {
        if (!known.insert(thread).second) continue;
        Tracee tracee(thread);
        if (!tracee.attached() && errno != ESRCH) all_ = false;
        if (tracee.attached()) fresh.push_back(std::move(tracee));
        more = true;
      }
      if (known.size() == fresh.size()) began_ = SteadyClock::now();
      for (Tracee& tracee : fresh) tracee.interrupt();
      for (Tracee& tracee : fresh) {
        if (!tracee.stop(kStopsWithinMs)) all_ = all_ && !tracee.attached();  // an end is as good as a stop
        threads_.push_back(std::move(tracee));
      }
    }
  }

  bool all() const { return all_; }
  SteadyClock::time_point began() const { return began_; }

  /// Addresses in `code` at which something goes on, sooner or later: threads, and what handlers have interrupted. In
  /// order. None: it cannot be known.
  std::optional<std::vector<std::uint64_t>> places(const ForeignMemory& memory, const std::vector<Mapping>& mappings,
                                                   std::uint64_t code_begin, std::uint64_t code_end) const {
    std::vector<std::uint64_t> found;
    const auto look = [&](std::uint64_t word) {
      if (word >= code_begin && word < code_end) found.push_back(word);
    };
    std::vector<std::uint64_t> words;
    for (const Tracee& tracee : threads_) {
      if (!tracee.attached()) continue;
      const auto registers = tracee.registers();
      if (!registers) return std::nullopt;
      look(registers->rip);
      const std::uint64_t top = registers->rsp / sizeof(std::uint64_t) * sizeof(std::uint64_t);
      const auto stack = std::find_if(mappings.begin(), mappings.end(),
                                      [&](const Mapping& m) { return top >= m.begin && top < m.end; });
      if (stack == mappings.end() || stack->end - top > kDeepestStack) return std::nullopt;
      words.resize((stack->end - top) / sizeof(std::uint64_t));
      if (!memory.read(top, words.data(), words.size() * sizeof(std::uint64_t))) return std::nullopt;
      std::for_each(words.begin(), words.end(), look);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::vector<Tracee> threads_;
  bool all_ = true;
  SteadyClock::time_point began_;
};

bool is_stood_in(const Edits& edits, const std::vector<std::uint64_t>& places) {
  return std::any_of(edits.begin(), edits.end(), [&](const Edit& edit) {
    const auto at = std::upper_bound(places.begin(), places.end(), edit.address);
    return at != places.end() && edit.has_inside(*at);
  });
}

/// Pages of code that are about to change.
class Pages {
 public:
  explicit Pages(const ForeignMemory& memory) : memory_(memory) {}

  enum class Found { kBefore, kAfter, kOther };
  Found look(const Edits& edits) {
    bool before = true;
    bool after = true;
    for (const Edit& edit : edits) {
      const unsigned char* bytes = at(edit.address);
      before = before && bytes != nullptr && std::memcmp(bytes, edit.before, edit.size) == 0;
      after = after && bytes != nullptr && std::memcmp(bytes, edit.after, edit.size) == 0;
    }
    return before ? Found::kBefore : after ? Found::kAfter : Found::kOther;
  }
  void change(const Edits& edits) {
    for (const Edit& edit : edits) {
      std::memcpy(at(edit.address), edit.after, edit.size);
      changed_.insert(edit.address / arch::kPage * arch::kPage);
    }
  }
  bool write() {
    return std::all_of(changed_.begin(), changed_.end(),
                       [&](std::uint64_t page) { return memory_.write(page, pages_[page].data(), arch::kPage); });
  }

 private:
  unsigned char* at(std::uint64_t address) {
    const std::uint64_t page = address / arch::kPage * arch::kPage;
    const auto [found, fresh] = pages_.try_emplace(page);
    if (fresh) {
      found->second.resize(arch::kPage);
      if (!memory_.read(page, found->second.data(), arch::kPage)) found->second.clear();
    }
    return found->second.empty() ? nullptr : found->second.data() + (address - page);
  }
  const ForeignMemory& memory_;
  std::map<std::uint64_t, std::vector<unsigned char>> pages_;
  std::set<std::uint64_t> changed_;
};

class Patcher {
 public:
  Patcher(pid_t pid, const ForeignMemory& memory, std::vector<Change> changes, bool back)
      : pid_(pid), memory_(memory), back_(back), left_(std::move(changes)) {
    for (const Change& change : left_)
      for (const Edit& edit : change.edits) {
        begin_ = std::min(begin_, edit.address);
        end_ = std::max(end_, edit.address + edit.size);
      }
  }

  Result<PatchedCode> run() {
    const auto crossing = std::stable_partition(left_.begin(), left_.end(), [](const Change& change) {
      return std::all_of(change.edits.begin(), change.edits.end(), [](const Edit& e) { return e.is_in_one_page(); });
    });
    done_.left = static_cast<std::uint64_t>(left_.end() - crossing);
    left_.erase(crossing, left_.end());
    for (int idle = 0; !left_.empty() && idle < kIdleStops && done_.stops < kMostStops;) {
      if (done_.stops != 0) usleep(kBetweenStops);
      const std::size_t before = left_.size();
      if (const Status stopped = stop_once(); !stopped) return stopped.error();
      idle = left_.size() == before ? idle + 1 : 0;
    }
    done_.left += left_.size();
    return done_;
  }

 private:
  Status stop_once() {
    const std::vector<Mapping> mappings = mappings_of(pid_);
    if (mappings.empty()) return Error{"it has ended"};
    std::optional<SteadyClock::time_point> began;
    {
      const Stopped stopped(pid_);
      began = stopped.began();
      ++done_.stops;
      if (!stopped.all()) return Unit{};  // one of them is in the kernel, and cannot be stopped now
      const auto places = stopped.places(memory_, mappings, begin_, end_);
      if (!places) return Unit{};
      if (!change(*places)) return Error{"its code cannot be written to (SELinux, AppArmor or lockdown?)"};
    }
    const auto lasted = std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now() - *began).count();
    done_.longest_stop_ns = std::max(done_.longest_stop_ns, static_cast<std::uint64_t>(lasted));
    return Unit{};
  }

  bool change(const std::vector<std::uint64_t>& places) {
    const auto began = SteadyClock::now();
    Pages pages(memory_);
    std::vector<Change> later;
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (SteadyClock::now() - began > kChangeLasts) {
        later.insert(later.end(), std::make_move_iterator(left_.begin() + static_cast<std::ptrdiff_t>(i)),
                     std::make_move_iterator(left_.end()));
        break;
      }
      const Edits& edits = left_[i].edits;
      if (is_stood_in(edits, places)) {
        later.push_back(std::move(left_[i]));
        continue;
      }
      const Pages::Found found = pages.look(edits);
      if (found == Pages::Found::kBefore) {
        pages.change(edits);
        count_listener(left_[i].semaphore);
      }
      ++(found == Pages::Found::kOther ? done_.left : done_.functions);
    }
    left_ = std::move(later);
    return pages.write();
  }

  /// The program computes a probe's values where somebody listens only.
  void count_listener(std::uint64_t semaphore) const {
    auto count = semaphore != 0 ? memory_.get<std::uint16_t>(semaphore) : std::nullopt;
    if (!count || (back_ && *count == 0)) return;
    *count = static_cast<std::uint16_t>(back_ ? *count - 1 : *count + 1);
    memory_.write(semaphore, &*count, sizeof *count);
  }

  pid_t pid_;
  const ForeignMemory& memory_;
  bool back_;
  std::vector<Change> left_;
  std::uint64_t begin_ = ~std::uint64_t{0};
  std::uint64_t end_ = 0;
  PatchedCode done_;
};

/// A process whose code is changed.
class Process {
 public:
  static Result<Process> open(pid_t pid) {
    auto memory = ForeignMemory::open(pid);
    if (!memory) return memory.error();
    return Process(pid, std::move(*memory));
  }

  Changes changes(bool back) const { return changes_of(memory_, mappings_of(pid_), back); }
  Result<PatchedCode> apply(std::vector<Change> changes, bool back) const {
    return Patcher(pid_, memory_, std::move(changes), back).run();
  }
  /// What the change would make is there; `any`: or a part of that.
  bool stands(const Change& change, bool any = false) const {
    const auto is_there = [&](const Edit& edit) {
      unsigned char now[sizeof edit.after];
      return memory_.read(edit.address, now, edit.size) && std::memcmp(now, edit.after, edit.size) == 0;
    };
    return any ? std::any_of(change.edits.begin(), change.edits.end(), is_there)
               : std::all_of(change.edits.begin(), change.edits.end(), is_there);
  }
  bool is_open(const Change& detour) const {
    constexpr std::uint8_t kShortJump = 0xeb;  // as runtime/hooks/plain_code.cc writes it
    return memory_.get<std::uint8_t>(detour.stub) == kShortJump;
  }

 private:
  Process(pid_t pid, ForeignMemory memory) : pid_(pid), memory_(std::move(memory)) {}
  pid_t pid_;
  ForeignMemory memory_;
};

std::vector<Change> detours_among(const std::vector<Change>& all) {
  std::vector<Change> detours;
  std::copy_if(all.begin(), all.end(), std::back_inserter(detours), [](const Change& c) { return c.is_detour(); });
  return detours;
}

/// A function is traced there, or a part of one, that gives way to one of the detours.
bool gives_way(const Change& change, const std::vector<Change>& detours) {
  return change.what == Change::What::kFunction &&
         std::any_of(detours.begin(), detours.end(), [&](const Change& detour) {
           return change.function == detour.function || change.overlaps(detour);
         });
}

/// A thread that is in a stub now would go on in the middle of what the change writes.
bool is_returned_into(const Change& change, const std::vector<std::uint64_t>& returns) {
  return is_stood_in(change.edits, returns);
}

}  // namespace

Result<PatchedCode> write_jumps(pid_t pid) {
  const auto process = Process::open(pid);
  if (!process) return process.error();
  std::vector<Change> changes = process->changes(false).all;
  std::vector<Change> detours = detours_among(changes);
  std::erase_if(detours, [&](const Change& detour) { return !process->stands(detour, true); });
  std::erase_if(changes, [&](const Change& c) { return c.is_detour() || gives_way(c, detours); });
  return process->apply(std::move(changes), false);
}

Result<PatchedCode> take_back_jumps(pid_t pid) {
  const auto process = Process::open(pid);
  if (!process) return process.error();
  std::vector<Change> changes = process->changes(true).all;
  // Their bytes may be those of functions, too.
  std::stable_partition(changes.begin(), changes.end(), [](const Change& c) { return c.is_detour(); });
  return process->apply(std::move(changes), true);
}

Result<Detours> detours_of(pid_t pid) {
  const auto process = Process::open(pid);
  if (!process) return process.error();
  const std::vector<Change> all = process->changes(false).all;
  const std::vector<Change> found = detours_among(all);
  Detours detours;
  detours.any = !found.empty();
  detours.stand = std::all_of(found.begin(), found.end(), [&](const Change& c) { return process->stands(c); });
  detours.are_open = std::all_of(found.begin(), found.end(), [&](const Change& c) { return process->is_open(c); });
  for (const Change& change : all)
    if (gives_way(change, found)) detours.functions.push_back(change.function);
  return detours;
}

Status write_detours(pid_t pid) {
  const auto process = Process::open(pid);
  if (!process) return process.error();
  const Changes changes = process->changes(false);
  const std::vector<Change> detours = detours_among(changes.all);
  const auto way = [&](bool back) {
    std::vector<Change> found = back ? process->changes(true).all : changes.all;
    std::erase_if(found, [&](const Change& c) { return !gives_way(c, detours); });
    return found;
  };
  std::vector<Change> traced = way(false);
  std::erase_if(traced, [&](const Change& c) { return !process->stands(c); });
  for (const Change& detour : detours)
    if (is_returned_into(detour, changes.returns))
      return Error{detour.name + ": a jump would lie where stubs go back to"};
  const auto undo = [&](const Error& why) {
    std::vector<Change> back = detours_among(process->changes(true).all);
    if (const auto done = process->apply(std::move(back), true); !done) return done.error();
    if (const auto done = process->apply(traced, false); !done) return done.error();
    return why;
  };
  // An earlier karst may have been killed.
  if (std::any_of(detours.begin(), detours.end(), [&](const Change& c) { return process->stands(c, true); })) {
    const auto begun = process->apply(detours_among(process->changes(true).all), true);
    if (!begun) return begun.error();
  }
  const Error stays{
      "threads stand there all the time, a jump would lie in two pages, or its code is not as in its file"};
  const auto cleared = process->apply(way(true), true);
  if (!cleared) return cleared.error();
  if (cleared->left == 0)
    if (const auto written = process->apply(detours, false); !written) return written.error();
  for (const Change& detour : detours)
    if (!process->stands(detour)) return undo({detour.name + ": " + stays.message});
  return Unit{};
}

}  // namespace karst::collect
