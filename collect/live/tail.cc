// SPDX-License-Identifier: MIT
// Follows the blocks of an arena by their threads and sequence numbers. A listing of all blocks is made for each look:
// it costs some 20 ns a block, and needs no trust in the lists that the process keeps.
#include "collect/live/tail.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <span>

#include "arch/cpu.h"
#include "collect/live/tail_thread.h"
#include "format/note.h"
#include "walk/words.h"

namespace karst::collect {

using namespace format;

namespace {

constexpr std::size_t kBlocksAtOnce = 128;     // of a look: some 30,000 calls, so that lines come soon
constexpr std::size_t kMostBehind = 16 << 10;  // unread blocks: some 4 million calls
constexpr std::size_t kMuchBehind = 2000;      // so many are read in time, however old they are
constexpr std::size_t kHistoryBlocks = 4000;   // that are walked for what is open at the start
constexpr std::size_t kLeastHistory = 8;       // of them for each thread
constexpr int kHolePatience = 3;               // looks until a slot is taken to stay empty

bool before(const ArenaBlock& block, std::uint64_t sequence) { return block.sequence < sequence; }

void add(TailCounts& sum, const TailCounts& more) {
  sum.shown += more.shown;
  sum.missed += more.missed;
  sum.overwritten += more.overwritten;
  sum.threads += more.threads;
  sum.lines += more.lines;
}

/// Where a mark at the end is still short of what belongs to it; else `count`.
std::size_t without_torn_mark(std::span<const Event> words, std::size_t begin, std::size_t count) {
  std::size_t mark = count;
  while (mark > begin && words[mark - 1] != 0 && !event_has_time(words[mark - 1])) --mark;
  if (mark == begin) return count;
  const Event first = words[--mark];
  std::size_t needed = 1;
  if (event_is(first, Mark::kNote))
    needed = count - mark > 1 && event_is(words[mark + 1], Mark::kNoteHead) ? 2 + note_head(words[mark + 1]).words : 2;
  else if (event_is(first, Mark::kSwitched))
    needed = 3;
  else if (event_is(first, Mark::kJumped) || event_is(first, Mark::kUnwound))
    needed = 2;
  return count - mark < needed ? mark : count;
}

}  // namespace

/// A thread, and up to where it was read.
struct Tail::Followed {
  Followed(Tail& tail, std::uint32_t number, const reader::Thread& thread)
      : calls(tail, number), tid(thread.tid), joined_ticks(thread.joined_ticks) {}

  TailThread calls;
  const std::uint32_t tid;
  const std::uint64_t joined_ticks;
  bool wanted = true;
  ArenaBlock first;                // that was listed
  std::vector<ArenaBlock> blocks;  // of this look's listing, from the position on
  bool begun = false;              // there is a position:
  ArenaBlock at;                   // the block
  std::size_t consumed = 0;        // its slots that were read
  bool done = false;               // it has no more
  bool has_read = false;           // any of the thread's
  // What may be otherwise when looked at again.
  std::uint64_t doubted = ~std::uint64_t{0};  // sequence number of a block
  std::uint64_t hole = 0;
  int hole_looks = 0;

  /// False the first time.
  bool is_sure_of(std::uint64_t sequence) {
    if (doubted == sequence) return true;
    doubted = sequence;
    return false;
  }
  void go_to(const ArenaBlock& block) {
    at = block;
    begun = true;
    done = false;
    consumed = 0;
  }
};

Tail::Tail(const ArenaView& arena, TailOptions options) : arena_(arena), options_(std::move(options)) {
  if (options_.from <= arena_.start().ticks) return;  // from the first one on
  threads_before_ = arena_.threads_total();
  began_at_ = arch::time_stamp();
}

Tail::~Tail() = default;

TailRule Tail::rule(std::uint32_t id) {
  if (id >= rules_.size() || !rules_[id].first) {
    if (id == 0 || id > arena_.function_count()) return {};  // not yet, or never
    if (id >= rules_.size()) rules_.resize(std::size_t{id} + 1);
    rules_[id] = {true, options_.rule_of(id)};
  }
  return rules_[id].second;
}

TailCounts Tail::counts() const {
  TailCounts sum = gone_;
  for (const auto& f : followed_)
    if (f) {
      add(sum, f->calls.counts);
      sum.threads += f->wanted && !f->has_read && f->blocks.empty() ? 1 : 0;
    }
  const std::uint64_t known = threads_before_ + threads_seen_;
  const std::uint64_t total = arena_.threads_total();
  sum.threads += total > known ? total - known : 0;
  return sum;
}

std::unique_ptr<Tail::Followed> Tail::make(const reader::Thread& thread) {
  auto made = std::make_unique<Followed>(*this, static_cast<std::uint32_t>(known_.size()), thread);
  made->wanted = !options_.wants || options_.wants(thread);
  known_.push_back(thread);
  threads_seen_ += thread.joined_ticks >= began_at_ ? 1 : 0;
  return made;
}

// The blocks of a listing, by thread, from its position on. An entry of the table of threads goes to another thread
// when nothing is left of the first one: then other blocks lie before the position or at it.
void Tail::sort_out(const std::vector<ArenaBlock>& blocks) {
  for (const auto& f : followed_)
    if (f) f->blocks.clear();
  std::optional<reader::Process> facts;
  const auto thread_at = [&](std::uint32_t index) {
    if (!facts) facts = arena_.process_without_functions();
    const auto found = std::find_if(facts->threads.begin(), facts->threads.end(),
                                    [index](const reader::Thread& t) { return t.index == index; });
    if (found != facts->threads.end()) return *found;
    reader::Thread unknown;
    unknown.index = index;
    return unknown;
  };
  const auto is_another = [](const Followed& f, const reader::Thread& thread) {
    return thread.tid != f.tid || thread.joined_ticks != f.joined_ticks;
  };
  const auto replace = [&](std::unique_ptr<Followed>& f, const reader::Thread& thread) {
    add(gone_, f->calls.counts);
    gone_.threads += f->wanted && !f->has_read ? 1 : 0;
    auto other = make(thread);
    other->blocks = std::move(f->blocks);
    other->first = other->blocks[0];
    f = std::move(other);
  };
  for (const ArenaBlock& block : blocks) {
    if (block.thread >= followed_.size()) followed_.resize(block.thread + std::size_t{1});
    auto& f = followed_[block.thread];
    if (!f) f = make(thread_at(block.thread));
    if (f->blocks.empty() && f->first.generation == 0) f->first = block;
    f->blocks.push_back(block);
  }
  for (auto& f : followed_) {
    if (!f || f->blocks.empty()) continue;
    std::vector<ArenaBlock>& own = f->blocks;
    std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    if (!f->begun) {
      const bool is_same = std::any_of(own.begin(), own.end(), [&f](const ArenaBlock& b) {
        return b.index == f->first.index && b.generation == f->first.generation;
      });
      // What was known of the thread may have been the next one's.
      if (is_same || (own[0].sequence > f->first.sequence && !is_another(*f, thread_at(own[0].thread)))) continue;
      replace(f, thread_at(own[0].thread));
      continue;
    }
    auto from = std::lower_bound(own.begin(), own.end(), f->at.sequence, before);
    const bool is_listed = from != own.end() && from->sequence == f->at.sequence;
    const bool is_other = is_listed && (from->generation != f->at.generation || from->index != f->at.index);
    if (is_other || (!is_listed && from != own.begin())) {
      const reader::Thread thread = thread_at(own[0].thread);
      if (is_other || is_another(*f, thread)) {
        replace(f, thread);
        continue;
      }
    }
    own.erase(own.begin(), from);
  }
}

// Of what was before the start the newest blocks alone tell what is open.
void Tail::leave_out_history() {
  std::size_t threads = 0;
  for (const auto& f : followed_) threads += f ? 1 : 0;
  const std::size_t most = std::max(kLeastHistory, kHistoryBlocks / std::max<std::size_t>(threads, 1));
  for (const auto& f : followed_) {
    if (!f) continue;
    std::size_t history = 0;
    while (history + 1 < f->blocks.size() && f->blocks[history + 1].ticks < options_.from) ++history;
    if (history > most)
      f->blocks.erase(f->blocks.begin(), f->blocks.begin() + static_cast<std::ptrdiff_t>(history - most));
  }
}

// Up to when this look reads: all threads to the same moment, so that their lines can be put in order.
Tail::Horizon Tail::horizon(std::uint64_t now, bool ended) {
  unread_.clear();
  for (const auto& f : followed_) {
    if (!f || !f->wanted) continue;
    for (const ArenaBlock& block : f->blocks)
      if (block.ticks >= options_.from && (!f->begun || block.sequence != f->at.sequence))
        unread_.push_back(block.ticks);
  }
  std::sort(unread_.begin(), unread_.end());
  const std::size_t count = unread_.size();
  const std::size_t most = std::min<std::size_t>(arena_.block_capacity() / 2, kMostBehind);
  const bool is_late =
      options_.most_lag != 0 && count > kMuchBehind && now > options_.most_lag && unread_[0] < now - options_.most_lag;
  if (!ended && (count > most || is_late)) {
    std::size_t at = count - std::min(count, most / 2);
    while (is_late && at + 1 < count && unread_[at] < now - options_.most_lag / 2) ++at;
    at = std::min(std::max<std::size_t>(at, 1), count - 1);
    return {unread_[at], true, true};
  }
  if (count > kBlocksAtOnce && unread_[kBlocksAtOnce] > unread_[0]) return {unread_[kBlocksAtOnce] - 1, false, true};
  return {ended ? ~std::uint64_t{0} : now, false, false};
}

// Up to where the newest block is sure to stay as it is.
std::size_t Tail::settled(Followed& f, std::span<const Event> events, std::uint64_t now) const {
  std::size_t count = events.size();
  const auto hole = std::find(events.begin() + static_cast<std::ptrdiff_t>(f.consumed), events.end(), Event{0});
  if (hole != events.end()) {
    const auto slot = static_cast<std::size_t>(hole - events.begin());
    const std::uint64_t name = f.at.sequence * kEventsPerBlock + slot + 1;
    if (f.hole != name) f.hole_looks = 0;
    f.hole = name;
    if (++f.hole_looks < kHolePatience) count = slot;
  }
  count = without_torn_mark(events, f.consumed, count);
  // A call that is too short is taken back if its enter is the last event still.
  if (const std::uint64_t least = arena_.min_duration_ticks(); least != 0)
    while (count > f.consumed && !event_is_exit(events[count - 1]) &&
           event_ticks(events[count - 1], f.at.ticks) + least > now)
      --count;
  return count;
}

void Tail::follow(Followed& f, const Horizon& horizon, std::uint64_t now, bool ended) {
  for (std::size_t i = 0; i < f.blocks.size(); ++i) {
    const ArenaBlock& block = f.blocks[i];
    const bool is_newest = i + 1 == f.blocks.size();
    if (!f.begun) {
      if (block.ticks > horizon.to) return;
      if (block.sequence != 0 && block.ticks > options_.from) f.calls.overwritten(block.sequence * kEventsPerBlock);
      f.calls.begin(block.sequence == 0 && !arena_.began_late());
      f.go_to(block);
    } else if (block.sequence != f.at.sequence) {
      if (block.ticks > horizon.to) return;
      const std::uint64_t missing = block.sequence - f.at.sequence - 1;
      const std::uint64_t rest = f.done ? 0 : kEventsPerBlock - f.consumed;
      if (missing != 0 || rest != 0) {
        // A listing takes a while: a block that came during it may be missing although a later one is there.
        if (!f.is_sure_of(block.sequence)) return;
        f.calls.gap(std::min(missing, ~std::uint64_t{0} / kEventsPerBlock / 2) * kEventsPerBlock + rest);
      }
      f.go_to(block);
    }
    const std::span<const Event> events = arena_.read(block, buffer_);
    if (events.size() <= f.consumed) {
      if (is_newest) return;
      // It was recycled since it was listed, or it has nothing: the next listing tells.
      if (events.empty() && !f.is_sure_of(block.sequence)) return;
      f.done = true;
      continue;
    }
    const std::size_t whole = is_newest && !ended ? settled(f, events, now) : events.size();
    std::size_t count = whole - f.consumed;
    if (is_newest || f.blocks[i + 1].ticks > horizon.to)
      count = walk::within(&events[f.consumed], count, block.ticks, 0, horizon.to).count;
    f.calls.consume(&events[f.consumed], count, block.ticks);
    f.consumed += count;
    f.has_read = f.has_read || count != 0;
    has_read_ = has_read_ || count != 0;
    if (f.consumed != events.size()) return;
    f.done = !is_newest || f.consumed == kEventsPerBlock;
  }
}

bool Tail::look(std::uint64_t now, bool ended) {
  texts_.clear();
  sort_out(arena_.ring_blocks());
  if (first_) leave_out_history();
  first_ = false;
  Horizon until = horizon(now, ended);
  has_read_ = false;
  const auto follow_all = [&] {
    for (const auto& f : followed_)
      if (f && f->wanted) follow(*f, until, now, ended);
  };
  for (const auto& f : followed_)
    if (f) f->calls.begin_look(until.skip);
  follow_all();
  if (ended && until.more && !has_read_) {
    // Times that are made up may be later than all that follows them.
    until = {~std::uint64_t{0}, false, false};
    follow_all();
  }
  for (const auto& f : followed_)
    if (f && f->wanted) f->calls.end_look(std::min(now, until.to), ended && !until.more);
  merge();
  return until.more && has_read_;
}

// In order of the keys, which are in order within each thread.
void Tail::merge() {
  lines_.clear();
  struct Rest {
    const TailLine* next;
    const TailLine* end;
    bool operator>(const Rest& other) const {
      return next->key != other.next->key ? next->key > other.next->key : next->thread > other.next->thread;
    }
  };
  std::priority_queue<Rest, std::vector<Rest>, std::greater<>> rests;
  for (const auto& f : followed_) {
    if (!f || f->calls.lines().empty()) continue;
    const std::vector<TailLine>& own = f->calls.lines();
    rests.push({own.data(), own.data() + own.size()});
  }
  while (!rests.empty()) {
    Rest first = rests.top();
    rests.pop();
    do {
      lines_.push_back(*first.next++);
    } while (first.next != first.end && (rests.empty() || rests.top() > first));
    if (first.next != first.end) rests.push(first);
  }
}

}  // namespace karst::collect
