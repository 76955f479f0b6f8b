// SPDX-License-Identifier: MIT
#include "collect/inject/patch.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arch/page.h"
#include "collect/inject/changes.h"
#include "collect/inject/memory.h"
#include "collect/inject/slots.h"
#include "collect/inject/threads.h"
#include "collect/inject/tracee.h"

namespace karst::collect {
namespace {

constexpr std::uint64_t kDeepestStack = 16 << 20;  // bytes that are looked through
// Of a stop, with writing it; then no further function is begun. Less where the threads took long to stop.
constexpr std::chrono::microseconds kChangeLasts{1000};
constexpr std::chrono::microseconds kLeastChange{250};
constexpr std::chrono::microseconds kStopLasts{2500};
// From the first that is asked to stop to the last that does: so long the others may stand still for one. Then they go
// on, and there is another try. Of hundreds each one takes some more.
constexpr std::chrono::milliseconds kAllStopWithin{5};
constexpr std::chrono::microseconds kEachStopsWithin{100};
constexpr std::chrono::milliseconds kLookAfter{1};  // whether who has not stopped is in uninterruptible sleep
constexpr std::chrono::seconds kTriesFor{5};        // in which they have not stopped at once
constexpr std::size_t kMostStops = 200;             // and one more for so many functions:
constexpr std::size_t kFewInAStop = 100;            // with new pages it is some 500 of them
constexpr int kIdleStops = 20;                      // which bring nothing forward
constexpr useconds_t kBetweenStops = 10'000;        // microseconds
constexpr useconds_t kLongestPause = 80'000;        // while the threads do not stop at once
constexpr int kLooksAtLate = 20;                    // before the next try

/// Until this goes nobody whom karst lets go on takes its CPU, before it has let the others go on, too. Where the
/// system permits it: to root.
class Urgent {
 public:
  Urgent() {
    policy_ = sched_getscheduler(0);
    const bool is_usual = policy_ == SCHED_OTHER || policy_ == SCHED_BATCH || policy_ == SCHED_IDLE;
    sched_param urgent{};
    urgent.sched_priority = 1;
    urgent_ = is_usual && sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &urgent) == 0;
  }
  Urgent(Urgent&&) = delete;
  ~Urgent() {
    const sched_param usual{};
    if (urgent_) sched_setscheduler(0, policy_, &usual);
  }

 private:
  int policy_ = 0;
  bool urgent_ = false;
};

/// All threads of a process, stopped until this goes: in as_tracer().
class Stopped {
 public:
  Stopped(const HeldProcess& process, const ForeignMemory& memory) : began_(SteadyClock::now()) {
    std::set<pid_t> known;
    for (bool more = true; more && problem_.empty();) {
      more = false;
      std::vector<Tracee> fresh;
      for (const pid_t thread : process.threads()) {
        if (!known.insert(thread).second) continue;
        more = true;
        if (Tracee tracee(process, thread); tracee.attached())
          fresh.push_back(std::move(tracee));
        else if (const int error = errno; error != ESRCH && !is_ended(process.state(thread)))
          problem_ = "its thread " + std::to_string(thread) + " cannot be stopped: " + std::strerror(error);
      }
      if (threads_.empty()) began_ = SteadyClock::now();
      until_ = began_ + kAllStopWithin + kEachStopsWithin * static_cast<int>(known.size());
      for (Tracee& tracee : fresh) tracee.interrupt();
      for (Tracee& tracee : fresh) {
        wait_for(process, tracee, memory);
        threads_.push_back(std::move(tracee));
      }
    }
    if (problem_.empty()) stop_helpers(process, memory);
    if (!problem_.empty()) return;
    const auto one = std::find_if(threads_.begin(), threads_.end(), [](const Tracee& t) { return t.attached(); });
    is_other_program_ = one == threads_.end() || !memory.is_of(process, one->thread());
  }
  ~Stopped() { end(); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

  /// Why not all of them stand still; empty: they do.
  const std::string& problem() const { return problem_; }
  /// The one that does not.
  pid_t late() const { return late_; }
  /// The memory is not theirs any more, or they have ended.
  bool is_other_program() const { return is_other_program_; }
  SteadyClock::time_point began() const { return began_; }
  /// They go on, and for how long the first of them stood still.
  SteadyClock::duration end() {
    for (Tracee& tracee : threads_)
      if (tracee.stopped()) tracee.let_go();
    const auto lasted = SteadyClock::now() - began_;
    threads_.clear();  // each of those that are left stops yet, and goes on
    return lasted;
  }

  /// Addresses in `code` at which something goes on, sooner or later: threads, and what handlers have interrupted. In
  /// order. None: it cannot be known.
  std::optional<std::vector<std::uint64_t>> places(const ForeignMemory& memory, const std::vector<Mapping>& mappings,
                                                   std::uint64_t code_begin, std::uint64_t code_end) const {
    std::vector<std::uint64_t> found;
    const auto look = [&](std::uint64_t word) {
      if (word >= code_begin && word < code_end) found.push_back(word);
    };
    std::vector<std::uint64_t> words;
    /// `block`: what lies behind a stack may be mapped together with it. A thread's control block ends its frames.
    const auto look_through = [&](std::uint64_t sp, std::uint64_t block) {
      const std::uint64_t top = sp / sizeof(std::uint64_t) * sizeof(std::uint64_t);
      const auto stack = std::find_if(mappings.begin(), mappings.end(),
                                      [&](const Mapping& m) { return top >= m.begin && top < m.end; });
      if (stack == mappings.end()) return false;
      const std::uint64_t end = block > top && block < stack->end ? block : stack->end;
      if (end - top > kDeepestStack) return false;
      words.resize((end - top) / sizeof(std::uint64_t));
      if (!memory.read(top, words.data(), words.size() * sizeof(std::uint64_t))) return false;
      std::for_each(words.begin(), words.end(), look);
      return true;
    };
    for (const Tracee& tracee : threads_) {
      if (!tracee.stopped()) continue;
      const auto registers = tracee.registers();
      if (!registers) return std::nullopt;
      look(registers->rip);
      if (const Resumption next = resumption_of(*registers); next.ip != registers->rip) look(next.ip);
      if (!look_through(registers->rsp, registers->fs_base / sizeof(std::uint64_t) * sizeof(std::uint64_t)))
        return std::nullopt;
    }
    for (const DeepWait& wait : waiting_) {
      look(wait.ip);
      look(wait.ip - kSystemCallSize);
      if (!look_through(wait.sp, 0)) return std::nullopt;
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  static bool is_ended(char state) { return state == 'Z' || state == 'X' || state == '?'; }

  /// libkarst's own processes beside it share its memory, and change its code, too (runtime/system/own_process.h).
  void stop_helpers(const HeldProcess& process, const ForeignMemory& memory) {
    for (const pid_t child : process.children()) {
      auto held = HeldProcess::open(child);
      std::string name;
      if (!held || !std::getline(std::ifstream(held->path("comm")), name) || !name.starts_with("karst-")) continue;
      helpers_.push_back(std::move(*held));
      Tracee tracee(helpers_.back(), child);
      if (!tracee.attached() || !tracee.stop(SteadyClock::now() + kAllStopWithin)) {
        if (tracee.attached()) problem_ = "libkarst's own process " + std::to_string(child) + " did not stop";
      } else if (!memory.is_of(helpers_.back(), child)) {
        continue;  // of another program's
      }
      threads_.push_back(std::move(tracee));
    }
  }

  void wait_for(const HeldProcess& process, Tracee& tracee, const ForeignMemory& memory) {
    if (tracee.stop(began_ + kLookAfter) || !tracee.attached()) return;
    const pid_t thread = tracee.thread();
    const auto wait = deep_wait_of(process, thread, memory);
    if (wait && !wait->is_vfork && !wait->is_exec) return waiting_.push_back(*wait);
    if (!wait && (tracee.stop(until_) || !tracee.attached())) return;
    late_ = thread;
    const std::string which = "its thread " + std::to_string(thread);
    problem_ = !wait ? which + " did not stop within some milliseconds (a busy machine?)"
               : wait->is_vfork
                   ? which + " waits in vfork() for a child, which executes the same code in the same memory meanwhile"
                   : which + " executes another program";
  }

  const Urgent urgent_;  // until all of them go on
  std::deque<HeldProcess> helpers_;
  std::vector<Tracee> threads_;
  std::vector<DeepWait> waiting_;
  std::string problem_;
  pid_t late_ = 0;
  bool is_other_program_ = false;
  SteadyClock::time_point began_;
  SteadyClock::time_point until_;  // when all have stopped, or there is another try
};

bool is_stood_in(const Edits& edits, const std::vector<std::uint64_t>& places) {
  return std::any_of(edits.begin(), edits.end(), [&](const Edit& edit) {
    const auto at = std::lower_bound(places.begin(), places.end(), edit.first_inside());
    return at != places.end() && edit.has_inside(*at);
  });
}

/// Pages of code that are about to change.
class Pages {
 public:
  explicit Pages(const ForeignMemory& memory) : memory_(memory) {}

  enum class Found { kBefore, kAfter, kOther };
  /// `some`: edits that have been made already count as not made, if others are not.
  Found look(const Edits& edits, bool some) {
    bool before = true;
    bool after = true;
    for (const Edit& edit : edits) {
      const unsigned char* bytes = at(edit.address);
      const bool is_after = bytes != nullptr && edit.is_after(bytes);
      const bool is_before = bytes != nullptr && edit.is_before(bytes);
      before = before && (is_before || (some && is_after));
      after = after && is_after;
    }
    return after ? Found::kAfter : before ? Found::kBefore : Found::kOther;
  }
  void change(const Edits& edits) {
    for (const Edit& edit : edits) {
      std::memcpy(at(edit.address), edit.after, edit.size);
      changed_.insert(edit.address / arch::kPage * arch::kPage);
    }
  }
  std::size_t changed() const { return changed_.size(); }
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
  Patcher(const HeldProcess& process, const ForeignMemory& memory, std::vector<Change> changes, bool back)
      : process_(process), memory_(memory), back_(back), left_(std::move(changes)) {
    for (const Change& change : left_)
      for (const Edit& edit : change.what == Change::What::kSlot ? Edits() : change.edits) {
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
    const std::size_t most = kMostStops + left_.size() / kFewInAStop;
    std::size_t whole = 0;  // stops of all threads
    auto until = SteadyClock::now() + kTriesFor;
    useconds_t pause = kBetweenStops;
    for (int idle = 0; left() != 0 && idle < kIdleStops && whole < most && SteadyClock::now() < until;) {
      if (done_.stops != 0) usleep(pause);
      const std::size_t before = left();
      const Status stopped = as_tracer([this] { return stop_once(); });
      if (!stopped) return stopped.error();
      if (!done_.problem.empty()) {
        pause = std::min(2 * pause, kLongestPause);
        for (int look = 0; look < kLooksAtLate && process_.state(late_) == 'D'; ++look) usleep(kBetweenStops);
        continue;
      }
      pause = kBetweenStops;
      ++whole;
      until = SteadyClock::now() + kTriesFor;
      idle = left() == before ? idle + 1 : 0;
      if (next_ != left_.size()) continue;
      left_ = std::exchange(later_, {});
      next_ = 0;
    }
    if (whole == 0 && !done_.problem.empty())
      return Error{done_.problem + ": its code cannot be changed meanwhile, nothing of it was, and " +
                   std::to_string(kTriesFor.count()) + " s have passed; try again"};
    done_.left += left();
    return done_;
  }

 private:
  std::size_t left() const { return left_.size() - next_ + later_.size(); }

  Status stop_once() {
    const std::vector<Mapping> mappings = mappings_of(process_);
    if (mappings.empty()) return Error{"it has ended"};
    Stopped stopped(process_, memory_);
    ++done_.stops;
    done_.problem = stopped.problem();
    late_ = stopped.late();
    if (stopped.is_other_program()) return Error{"it has become another program meanwhile"};
    bool is_written = true;
    if (stopped.problem().empty())
      if (const auto places = stopped.places(memory_, mappings, begin_, end_); places) {
        const auto until = stopped.began() + kStopLasts;
        const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(until - SteadyClock::now());
        is_written = change(*places, std::clamp(rest, kLeastChange, kChangeLasts));
      }
    const auto lasted = std::chrono::duration_cast<std::chrono::nanoseconds>(stopped.end()).count();
    done_.longest_stop_ns = std::max(done_.longest_stop_ns, static_cast<std::uint64_t>(lasted));
    if (!is_written) return Error{"its code cannot be written to (SELinux, AppArmor or lockdown?)"};
    return Unit{};
  }

  bool change(const std::vector<std::uint64_t>& places, std::chrono::microseconds most) {
    const auto began = SteadyClock::now();
    Pages pages(memory_);
    for (; next_ < left_.size(); ++next_) {
      if (SteadyClock::now() - began + write_lasts_ * pages.changed() > most) break;
      Change& next = left_[next_];
      const Edits& edits = next.edits;
      if (is_stood_in(edits, places)) {
        later_.push_back(std::move(next));
        continue;
      }
      // A budget takes single jumps of a function back while it runs.
      const Pages::Found found = pages.look(edits, back_);
      if (found == Pages::Found::kBefore) {
        pages.change(edits);
        count_listener(next.semaphore);
      }
      if (next.what != Change::What::kSlot) ++(found == Pages::Found::kOther ? done_.left : done_.functions);
    }
    const auto writing = SteadyClock::now();
    const bool written = pages.write();
    if (pages.changed() != 0) write_lasts_ = (SteadyClock::now() - writing) / pages.changed();
    return written;
  }

  /// The program computes a probe's values where somebody listens only.
  void count_listener(std::uint64_t semaphore) const {
    auto count = semaphore != 0 ? memory_.get<std::uint16_t>(semaphore) : std::nullopt;
    if (!count || (back_ && *count == 0)) return;
    *count = static_cast<std::uint16_t>(back_ ? *count - 1 : *count + 1);
    memory_.write(semaphore, &*count, sizeof *count);
  }

  const HeldProcess& process_;
  const ForeignMemory& memory_;
  bool back_;
  std::vector<Change> left_;  // from next_ on: not looked at in this round
  std::size_t next_ = 0;
  pid_t late_ = 0;             // who did not stop in the last stop
  std::vector<Change> later_;  // somebody stood there: in the next round
  std::uint64_t begin_ = ~std::uint64_t{0};
  std::uint64_t end_ = 0;
  SteadyClock::duration write_lasts_ = std::chrono::microseconds(10);  // of a page; the process gets a copy of it
  PatchedCode done_;
};

/// A process whose code is changed.
class Process {
 public:
  static Result<Process> open(const HeldProcess& held) {
    auto memory = ForeignMemory::open(held);
    if (!memory) return memory.error();
    return Process(held, std::move(*memory));
  }

  Changes changes(bool back) const {
    memory_.begin_look();
    return changes_of(memory_, mappings_of(held_), back);
  }
  std::vector<Change> slots() const {
    memory_.begin_look();
    return slots_of_ways_out(memory_, mappings_of(held_));
  }
  Result<PatchedCode> apply(std::vector<Change> changes, bool back) const {
    return Patcher(held_, memory_, std::move(changes), back).run();
  }
  /// What the change would make is there; `any`: or a part of that.
  bool stands(const Change& change, bool any = false) const {
    const auto is_there = [&](const Edit& edit) {
      unsigned char now[sizeof edit.after];
      return memory_.read(edit.address, now, edit.size) && edit.is_after(now);
    };
    return any ? std::any_of(change.edits.begin(), change.edits.end(), is_there)
               : std::all_of(change.edits.begin(), change.edits.end(), is_there);
  }
  bool is_open(const Change& detour) const {
    constexpr std::uint8_t kShortJump = 0xeb;  // as runtime/unbuilt/detours.cc writes it
    return memory_.get<std::uint8_t>(detour.stub) == kShortJump;
  }

 private:
  Process(HeldProcess held, ForeignMemory memory) : held_(std::move(held)), memory_(std::move(memory)) {}
  HeldProcess held_;
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

Result<PatchedCode> write_jumps(const HeldProcess& held) {
  const auto process = Process::open(held);
  if (!process) return process.error();
  Changes found = process->changes(false);
  std::vector<Change>& changes = found.all;
  std::vector<Change> detours = detours_among(changes);
  std::erase_if(detours, [&](const Change& detour) { return !process->stands(detour, true); });
  std::erase_if(changes, [&](const Change& c) { return c.is_detour() || gives_way(c, detours); });
  for (Change& slot : process->slots()) changes.push_back(std::move(slot));
  auto written = process->apply(std::move(changes), false);
  if (written) written->left += found.not_code;
  return written;
}

Result<PatchedCode> take_back_jumps(const HeldProcess& held) {
  const auto process = Process::open(held);
  if (!process) return process.error();
  std::vector<Change> changes = process->changes(true).all;
  // Their bytes may be those of functions, too.
  std::stable_partition(changes.begin(), changes.end(), [](const Change& c) { return c.is_detour(); });
  return process->apply(std::move(changes), true);
}

Result<Detours> detours_of(const HeldProcess& held) {
  const auto process = Process::open(held);
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

Status write_detours(const HeldProcess& held) {
  const auto process = Process::open(held);
  if (!process) return process.error();
  const Changes changes = process->changes(false);
  const std::vector<Change> detours = detours_among(changes.all);
  if (!changes.lost_detour.empty()) return Error{changes.lost_detour + ": no code is where it was"};
  std::vector<Change> traced = changes.all;
  std::erase_if(traced, [&](const Change& c) { return !gives_way(c, detours) || !process->stands(c, true); });
  for (const Change& detour : detours)
    if (is_returned_into(detour, changes.returns))
      return Error{detour.name + ": a jump would lie where stubs go back to"};
  const auto undo = [&](const Error& problem) {
    std::vector<Change> back = detours_among(process->changes(true).all);
    if (const auto done = process->apply(std::move(back), true); !done) return done.error();
    if (const auto done = process->apply(traced, false); !done) return done.error();
    return problem;
  };
  // An earlier karst may have been killed.
  if (std::any_of(detours.begin(), detours.end(), [&](const Change& c) { return process->stands(c, true); })) {
    const auto begun = process->apply(detours_among(process->changes(true).all), true);
    if (!begun) return begun.error();
  }
  const char* const why =
      ": threads stand there all the time, a jump would lie in two pages, or it is not as in its file";
  std::vector<Change> cleared = process->changes(true).all;
  std::erase_if(cleared, [&](const Change& c) { return !gives_way(c, traced); });
  const auto made_room = process->apply(std::move(cleared), true);
  if (!made_room) return made_room.error();
  for (const Change& detour : detours)
    if (made_room->left != 0 && std::any_of(traced.begin(), traced.end(), [&](const Change& c) {
          return gives_way(c, {detour}) && process->stands(c, true);
        }))
      return undo({detour.name + why});
  if (const auto written = process->apply(detours, false); !written) return written.error();
  for (const Change& detour : detours)
    if (!process->stands(detour)) return undo({detour.name + why});
  return Unit{};
}

}  // namespace karst::collect
