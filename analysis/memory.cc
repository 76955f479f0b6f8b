// SPDX-License-Identifier: MIT
// All records are replayed in order of time, so that one thread may free what another one took. What an allocation is
// freed by is noted with it; sums need no second replay then.
#include "analysis/memory.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "analysis/path_nodes.h"
#include "analysis/values.h"
#include "format/memory.h"
#include "format/note.h"

namespace karst::analysis {
namespace {

constexpr std::uint64_t kPage = 4096;

/// Parts of a process's addresses that are mapped, and by whom.
class Mappings {
 public:
  struct Part {
    std::uint64_t end;
    std::size_t record;
  };
  void unmap(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    auto at = parts_.upper_bound(begin);
    if (at != parts_.begin()) --at;
    while (at != parts_.end() && at->first < end) {
      const auto [first, part] = *at;
      if (part.end <= begin) {
        ++at;
        continue;
      }
      at = parts_.erase(at);
      if (first < begin) parts_[first] = {begin, part.record};
      if (part.end > end) parts_[end] = {part.end, part.record};
    }
  }
  void map(std::uint64_t begin, std::uint64_t end, std::size_t record) {
    unmap(begin, end);
    if (begin < end) parts_[begin] = {end, record};
  }
  const std::map<std::uint64_t, Part>& parts() const { return parts_; }

 private:
  std::map<std::uint64_t, Part> parts_;  // by begin
};

/// The length up to the end of its last page; what is too long for 64 bits ends with them.
std::uint64_t pages_of(std::uint64_t begin, std::uint64_t length) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max() / kPage * kPage;
  if (length > kLast || begin > kLast - length) return std::max(kLast, begin) - begin;
  return (begin + length + kPage - 1) / kPage * kPage - begin;
}

}  // namespace

MemorySum& MemorySum::operator+=(const MemorySum& other) {
  allocations += other.allocations;
  bytes += other.bytes;
  living += other.living;
  living_bytes += other.living_bytes;
  peak_bytes += other.peak_bytes;
  short_lived += other.short_lived;
  failed += other.failed;
  bytes_variance += other.bytes_variance;
  living_variance += other.living_variance;
  mapped_bytes += other.mapped_bytes;
  mapped_living_bytes += other.mapped_living_bytes;
  return *this;
}

MemoryFinder::MemoryFinder(const reader::Trace& trace, Parts* parts) : trace_(trace), parts_(parts) {}

const std::vector<MemoryFinder::What>& MemoryFinder::kinds_of(std::uint32_t process) {
  const auto [at, fresh] = kinds_.try_emplace(process);
  if (!fresh) return at->second;
  constexpr std::pair<std::string_view, What> kKinds[] = {
      {format::kAllocated, What::kAllocated},  {format::kFreed, What::kFreed},
      {format::kResized, What::kResized},      {format::kMapped, What::kMapped},
      {format::kUnmapped, What::kUnmapped},    {format::kRemapped, What::kRemapped},
      {format::kBreakMoved, What::kMovedBreak}};
  const std::vector<reader::Function>& functions = trace_.processes()[process].functions;
  at->second.resize(functions.size());
  for (std::size_t id = 0; id < functions.size(); ++id) {
    if (!functions[id].note) continue;
    for (const auto& [values, what] : kKinds)
      if (functions[id].values == values) at->second[id] = what;
    if (functions[id].values != format::kSampled) continue;
    const std::string& bytes = functions[id].name;
    std::from_chars(bytes.data(), bytes.data() + bytes.size(), use_.mean);
  }
  return at->second;
}

std::uint64_t MemoryFinder::on_again(std::uint32_t process) {
  const std::vector<What>& kinds = kinds_of(process);
  std::uint64_t ticks = 0;
  for (const reader::Switch& change : trace_.processes()[process].switches) {
    bool concerns = change.first == 0;
    for (std::uint64_t id = change.first; id < std::uint64_t{change.first} + change.count && id < kinds.size(); ++id)
      concerns |= kinds[id] != What::kNothing;
    if (!concerns) continue;
    if (!change.on) ticks = std::numeric_limits<std::uint64_t>::max();
    if (change.on && ticks != 0) ticks = change.end_ticks;
  }
  return ticks;
}

void MemoryFinder::add(const reader::Thread& thread, const reader::Calls& calls, const std::vector<bool>* counted) {
  const std::vector<What>& kinds = kinds_of(thread.process);
  ++threads_;
  const auto [known_from, fresh] = known_from_.try_emplace(thread.process, 0);
  if (fresh) known_from->second = on_again(thread.process);
  if (thread.overwritten_events != 0 || thread.lost_events != 0)
    known_from->second = std::max(known_from->second, calls.first_ticks);
  std::optional<PathNodes> nodes;
  runs_.push_back(records_.size());
  const std::size_t most = records_.size() + calls.notes.size();
  if (most > records_.capacity()) records_.reserve(std::max(most, 2 * records_.capacity()));
  if (parts_ != nullptr) nodes.emplace(use_.tree, parts_->of(thread, calls), calls);
  for (std::size_t i = 0; i < calls.notes.size(); ++i) {
    const reader::Note& note = calls.notes[i];
    if (!note.is(format::NoteKind::kRecord) || note.name >= kinds.size()) continue;
    Record record;
    record.what = kinds[note.name];
    if (record.what == What::kNothing) continue;
    const RecordNumbers numbers = record_numbers(calls.bytes_of(note));
    switch (record.what) {
      case What::kAllocated:
        record.size = numbers[0];
        record.address = numbers[1];
        break;
      case What::kMapped:
        record.address = numbers[1];
        record.size = pages_of(record.address, numbers[0]);
        break;
      case What::kFreed:
        record.address = numbers[0];
        break;
      case What::kUnmapped:
        record.address = numbers[0];
        record.size = pages_of(record.address, numbers[1]);
        break;
      case What::kResized:
        record.old = numbers[0];
        record.size = numbers[1];
        record.address = numbers[2];
        break;
      case What::kRemapped:
        record.address = numbers[3];
        record.size = pages_of(record.address, numbers[2]);
        break;
      case What::kMovedBreak:
        record.what = numbers[0] < numbers[1] ? What::kMapped : What::kUnmapped;
        record.address = std::min(numbers[0], numbers[1]);
        record.size = std::max(numbers[0], numbers[1]) - record.address;
        break;
      case What::kNothing:
      case What::kExit:
        break;
    }
    record.ticks = note.ticks;
    record.row = note.row;
    record.thread = threads_;
    record.process = thread.process;
    record.counted = counted == nullptr || (*counted)[i];
    record.node = nodes ? nodes->of(note.row) : 0;
    if (record.what == What::kRemapped) {
      Record old = record;
      old.what = What::kUnmapped;
      old.address = numbers[0];
      old.size = pages_of(numbers[0], numbers[1]);
      if (record.address != 0) records_.push_back(old);
      record.what = What::kMapped;
    }
    records_.push_back(record);
  }
}

/// Goes through all records once.
class MemoryFinder::Replay {
 public:
  Replay(std::vector<Record>& records, const std::map<std::uint32_t, std::uint64_t>& known_from, MemoryUse& use)
      : records_(records), known_from_(known_from), use_(use) {}

  void run() {
    for (std::size_t i = 0; i < records_.size(); ++i) step(i);
  }
  const std::unordered_map<std::uint32_t, Mappings>& mappings() const { return mappings_; }
  std::size_t peak() const { return peak_; }

  /// How many allocations one that was recorded stands for.
  double weight(std::uint64_t size) const {
    if (use_.mean == 0) return 1;
    const double chance = -std::expm1(-static_cast<double>(size) / static_cast<double>(use_.mean));
    return chance > 0 ? 1 / chance : 0;
  }
  double bytes(const Record& record) const { return static_cast<double>(record.size) * weight(record.size); }
  bool is_known(const Record& record) const {
    const auto from = known_from_.find(record.process);
    return from == known_from_.end() || record.ticks >= from->second;
  }

 private:
  using Living = std::unordered_map<std::uint64_t, std::size_t>;  // by address: the record

  void step(std::size_t i) {
    const Record& record = records_[i];
    switch (record.what) {
      case What::kResized: {
        const bool stays = record.address == 0 && record.size != 0 && record.old != 0;
        if (stays && last_freed_[record.thread].first == record.old)
          live_again(record.thread, record.process, record.old, i);
        allocate(i);
        break;
      }
      case What::kAllocated:
        allocate(i);
        break;
      case What::kFreed:
        free(i);
        break;
      case What::kMapped:
        if (record.address != 0) mappings_[record.process].map(record.address, record.address + record.size, i);
        break;
      case What::kUnmapped:
        mappings_[record.process].unmap(record.address, record.address + record.size);
        break;
      case What::kExit:
        for (const auto& [address, of] : living_[record.process]) {
          records_[of].ended = i + 1;
          change(records_[of], -1, i);
        }
        living_[record.process].clear();
        break;
      case What::kRemapped:
      case What::kMovedBreak:
      case What::kNothing:
        break;
    }
  }

  void change(const Record& record, double sign, std::size_t at) {
    if (!record.counted || !is_known(record)) return;
    now_ += sign * bytes(record);
    use_.steps.push_back({records_[at].ticks, now_});
    if (now_ <= most_) return;
    most_ = now_;
    peak_ = at;
  }

  void allocate(std::size_t i) {
    const Record& record = records_[i];
    if (record.address == 0) return;
    const auto [at, fresh] = living_[record.process].try_emplace(record.address, i);
    if (!fresh) {  // it was freed, and nobody saw that
      end(at->second, i);
      at->second = i;
    }
    last_[record.thread] = i;
    change(record, 1, i);
  }

  void end(std::size_t i, std::size_t by) {
    records_[i].ended = by + 1;
    records_[i].freed = true;
    change(records_[i], -1, by);
  }

  void free(std::size_t i) {
    const Record& record = records_[i];
    Living& living = living_[record.process];
    const auto at = living.find(record.address);
    if (at == living.end()) {
      ++use_.unknown_frees;
      return;
    }
    const std::size_t of = at->second;
    living.erase(at);
    end(of, i);
    const auto last = last_.find(record.thread);
    records_[of].short_lived = last != last_.end() && last->second == of;
    last_.erase(record.thread);
    last_freed_[record.thread] = {record.address, of};
  }

  /// A realloc() that failed: what it would have freed lives on.
  void live_again(std::uint32_t thread, std::uint32_t process, std::uint64_t address, std::size_t now) {
    const std::size_t of = last_freed_[thread].second;
    records_[of].ended = 0;
    records_[of].freed = records_[of].short_lived = false;
    living_[process][address] = of;
    change(records_[of], 1, now);
  }

  std::vector<Record>& records_;
  const std::map<std::uint32_t, std::uint64_t>& known_from_;
  MemoryUse& use_;
  std::unordered_map<std::uint32_t, Living> living_;  // by process
  std::unordered_map<std::uint32_t, Mappings> mappings_;
  std::unordered_map<std::uint32_t, std::size_t> last_;  // by thread: an allocation that it made just now
  std::unordered_map<std::uint32_t, std::pair<std::uint64_t, std::size_t>> last_freed_;
  double now_ = 0, most_ = 0;
  std::size_t peak_ = 0;
};

// Each thread's records are in order; of those of one time, the thread that was added first comes first.
void MemoryFinder::put_in_order() {
  const auto is_before = [](const Record& a, const Record& b) { return a.ticks < b.ticks; };
  const auto at = [this](std::size_t i) { return records_.begin() + static_cast<std::ptrdiff_t>(i); };
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    const auto end = run + 1 < runs_.size() ? at(runs_[run + 1]) : records_.end();
    if (!std::is_sorted(at(runs_[run]), end, is_before)) std::stable_sort(at(runs_[run]), end, is_before);
  }
  while (runs_.size() > 1) {
    std::vector<std::size_t> merged;
    for (std::size_t run = 0; run < runs_.size(); run += 2) {
      merged.push_back(runs_[run]);
      if (run + 1 == runs_.size()) break;
      const auto end = run + 2 < runs_.size() ? at(runs_[run + 2]) : records_.end();
      std::inplace_merge(at(runs_[run]), at(runs_[run + 1]), end, is_before);
    }
    runs_ = std::move(merged);
  }
}

MemoryUse MemoryFinder::take(std::uint64_t end) {
  std::size_t exits = 0;
  for (std::uint32_t process = 0; process < trace_.processes().size(); ++process) {
    const std::uint64_t ended = trace_.processes()[process].end_ticks;
    if (ended == 0 || ended >= end) continue;
    Record record;
    record.ticks = ended;
    record.process = process;
    record.what = What::kExit;
    runs_.push_back(records_.size());
    records_.push_back(record);
    ++exits;
  }
  put_in_order();
  while (!records_.empty() && records_.back().ticks >= end) records_.pop_back();
  use_.records = records_.size() - exits;
  for (const auto& [process, ticks] : known_from_) use_.known_from = std::max(use_.known_from, ticks);
  Replay replay(records_, known_from_, use_);
  replay.run();
  use_.sums.resize(use_.tree.nodes().size());
  if (keeps_) use_.allocations.resize(threads_);
  const std::size_t peak = replay.peak();
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const Record& record = records_[i];
    if (!record.counted || (record.what != What::kAllocated && record.what != What::kResized)) continue;
    MemorySum& sum = use_.sums[record.node];
    const double weight = replay.weight(record.size);
    if (record.address == 0) {
      if (record.size != 0) sum.failed += weight;
      continue;
    }
    MemoryAllocation allocation{record.ticks, MemoryAllocation::kNever, record.size, weight,
                                record.row,   replay.is_known(record)};
    if (record.freed) allocation.freed = records_[record.ended - 1].ticks;
    if (keeps_) use_.allocations[record.thread - 1].push_back(allocation);
    const double bytes = allocation.bytes();
    const double variance = allocation.variance();
    sum.allocations += weight;
    sum.bytes += bytes;
    sum.bytes_variance += variance;
    if (record.short_lived) sum.short_lived += weight;
    if (!allocation.known) {
      if (!record.freed) ++use_.not_known;
      continue;
    }
    if (i <= peak && (record.ended == 0 || record.ended > peak + 1)) sum.peak_bytes += bytes;
    if (record.freed) continue;
    sum.living += weight;
    sum.living_bytes += bytes;
    sum.living_variance += variance;
  }
  for (const Record& record : records_)
    if (record.what == What::kMapped && record.counted && record.address != 0)
      use_.sums[record.node].mapped_bytes += static_cast<double>(record.size);
  for (const auto& [process, mappings] : replay.mappings())
    for (const auto& [begin, part] : mappings.parts())
      if (records_[part.record].counted)
        use_.sums[records_[part.record].node].mapped_living_bytes += static_cast<double>(part.end - begin);
  for (const MemorySum& sum : use_.sums) use_.all += sum;
  if (!records_.empty()) use_.peak_ticks = records_[peak].ticks;
  return std::move(use_);
}

}  // namespace karst::analysis
