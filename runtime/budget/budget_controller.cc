// SPDX-License-Identifier: MIT
#include "runtime/budget/budget_controller.h"

#include "runtime/budget/tables.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

constexpr std::uint32_t kLeastEvents = 500;  // of a sample: fewer tell nothing, and there will be more
constexpr std::uint32_t kFew = 3;            // events of a function that may be chance
constexpr std::uint32_t kManyRare = 64;
constexpr std::uint32_t kMostShare = 900'000;  // beyond it loads would be guesses

std::uint32_t average(std::uint32_t old, std::uint64_t fresh, std::uint64_t elapsed, std::uint64_t span) {
  if (elapsed >= span) return static_cast<std::uint32_t>(fresh);
  return static_cast<std::uint32_t>((old * (span - elapsed) + fresh * elapsed) / span);
}

/// Heapsort: in place, and never slow. `before(a, b)`: a shall stand before b.
template <typename T, typename Before>
void sort(T* items, std::uint32_t count, Before before) {
  const auto sink = [&](std::uint32_t at, std::uint32_t end) {
    for (std::uint32_t child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end && before(items[child], items[child + 1])) ++child;
      if (!before(items[at], items[child])) return;
      const T t = items[at];
      items[at] = items[child];
      items[child] = t;
      at = child;
    }
  };
  for (std::uint32_t i = count / 2; i-- != 0;) sink(i, count);
  for (std::uint32_t end = count; end > 1;) {
    --end;
    const T t = items[0];
    items[0] = items[end];
    items[end] = t;
    sink(0, end);
  }
}

}  // namespace

// ---- what it costs ------------------------------------------------------------------------------

void Meter::add(std::uint64_t elapsed, std::uint64_t cost, std::uint32_t budget) {
  if (elapsed == 0) return;
  if (elapsed > 60 * kSecond) elapsed = 60 * kSecond;
  if (cost > 64 * elapsed) cost = 64 * elapsed;  // that many threads may run at once
  const std::uint64_t share = cost * 1000 / (elapsed / 1000 + 1);
  const auto window = [elapsed](std::uint64_t known, std::uint64_t longest) {
    return known + elapsed < longest ? known + elapsed : longest;
  };
  known_ = window(known_, kShort);
  recent_ = average(recent_, share, elapsed, known_);
  age_ = window(age_, kSecond);
  second_ = average(second_, share, elapsed, age_);
  if (budget == 0) {
    credit_ = 0;
    return;
  }
  const auto most = static_cast<std::int64_t>(kCredit / 1000 * budget / 1000);
  credit_ += static_cast<std::int64_t>(elapsed / 1000 * fill_of(budget) / 1000) - static_cast<std::int64_t>(cost);
  if (credit_ > most) credit_ = most;
  // A second in which everything was traced is not to be paid for during minutes.
  if (credit_ < -8 * most) credit_ = -8 * most;
}

bool Meter::is_over(std::uint32_t budget) const {
  return budget != 0 && known_ != 0 && credit_ < 0 && recent_ > fill_of(budget) / (is_in_debt(budget) ? 2 : 1);
}

std::uint32_t Meter::target(std::uint32_t budget) const { return target_of(budget) / (is_in_debt(budget) ? 2 : 1); }

bool Meter::is_in_debt(std::uint32_t budget) const {
  return credit_ < -static_cast<std::int64_t>(kCredit / 4 / 1000 * budget / 1000);
}

bool Meter::has_room(std::uint32_t budget) const {
  return credit_ * 2 >= static_cast<std::int64_t>(kCredit / 1000 * budget / 1000);
}

std::uint64_t Meter::credit_lasts(std::uint32_t budget) const {
  const std::uint32_t fill = fill_of(budget);
  if (budget == 0 || credit_ <= 0 || recent_ <= fill) return 0;
  return static_cast<std::uint64_t>(credit_) * 1000 / ((recent_ - fill) / 1000 + 1);
}

void Meter::start(std::uint32_t budget) { credit_ = static_cast<std::int64_t>(kCredit / 4 / 1000 * budget / 1000); }

std::uint64_t load_of_share(std::uint32_t share) {
  if (share > kMostShare) share = kMostShare;
  return std::uint64_t{share} * kMillion / (kMillion - share);
}

// ---- what is left out ---------------------------------------------------------------------------

bool Culler::create() {
  return map_table(records_, std::uint64_t{2} * kMostCulled) &&
         map_table(candidates_, std::uint64_t{2} * kMostCulled) && map_table(culled_list_, kMostCulled);
}

void Culler::reset() {
  sys::madvise(records_, std::size_t{2} * kMostCulled * sizeof(Record), MADV_DONTNEED);  // they read as zero
  are_real_ = false;
  used_ = listed_ = culled_ = 0;
  idle_ = 0;
  trial_until_ = next_trial_ = 0;
}

Culler::Record* Culler::record_of(std::uint32_t function, bool make) {
  std::uint32_t at = function * 0x9e3779b1U % (2 * kMostCulled);
  while (records_[at].function != 0 && records_[at].function != function) at = (at + 1) % (2 * kMostCulled);
  if (records_[at].function == function) return &records_[at];
  if (!make || used_ == kMostCulled) return nullptr;
  ++used_;
  records_[at].function = function;
  return &records_[at];
}

void Culler::put_into_list(Record& r) {
  idle_ += r.idle;
  culled_list_[listed_++] = static_cast<std::uint32_t>(&r - records_);
  r.culled = listed_;
}

void Culler::take_out_of_list(Record& r) {
  const std::uint32_t last = culled_list_[--listed_];
  culled_list_[r.culled - 1] = last;
  records_[last].culled = r.culled;
  r.culled = 0;
  idle_ -= r.idle;
}

void Culler::bring_back(Record& r) {
  take_out_of_list(r);
  --culled_;
  change_(context_, r.function, false);
}

std::uint64_t Culler::score_of(const FunctionSample& f, std::uint64_t longest) const {
  const std::uint64_t mean = f.calls == 0 ? 0 : f.ticks / f.calls * 1024 / ticks_per_1024ns_;
  if (f.calls != 0 && mean >= kLongCall) return 0;
  const std::uint64_t tells = 100 + mean + longest / 16;
  return (f.weight << 16) / tells + 1;
}

// Greedy by score, until what is left fits. Then those are spared again, from the last one chosen on, without which it
// fits as well: a function with most of the events often makes smaller ones that were chosen before it needless.
bool Culler::relieve(const EventSample& sample, std::uint32_t share, std::uint32_t target, std::uint64_t now) {
  if (sample.events() < kLeastEvents) return true;
  if (!are_real_) make_real(records_, std::uint64_t{2} * kMostCulled);
  are_real_ = true;
  const std::uint64_t load = load_of_share(share);
  const auto part = [&](const FunctionSample& f) { return load * f.weight / sample.weight(); };
  std::uint64_t fixed = 0;  // stays whatever is done
  std::uint64_t left = 0;
  std::uint32_t count = 0;
  std::uint32_t rare = 0;  // events of functions that have few
  for (std::uint32_t i = 0; i < sample.size(); ++i) {
    const FunctionSample& f = sample[i];
    const Kind kind = kind_of_(context_, f.function);
    const Record* r = record_of(f.function, false);
    if (kind == Kind::kGone && r != nullptr && r->culled != 0 && r->changed == now)
      continue;  // for another thread's sake
    const std::uint64_t here = f.longest * 1024 / ticks_per_1024ns_;
    const std::uint64_t longest = r != nullptr && r->longest > here ? r->longest : here;
    // Calls of which none began and ended in the sample are long.
    const std::uint64_t score = kind == Kind::kFree && f.whole != 0 ? score_of(f, longest) : 0;
    if (score != 0 && f.events <= kFew) rare += f.events;
    (score == 0 ? fixed : left) += part(f);
    if (score != 0) candidates_[count++] = {score, i};
  }
  // Where what must stay costs more than the budget, the rest need not all go for nothing.
  const std::uint64_t whole = load_of_share(target);
  const std::uint64_t limit = whole > fixed + whole / 4 ? whole - fixed : whole / 4;
  if (left <= limit) return fixed + left <= whole;
  sort(candidates_, count, [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  std::uint32_t chosen = 0;
  for (std::uint32_t i = 0; i < count && left > limit; ++i) {
    const FunctionSample& f = sample[candidates_[i].place];
    // One call in a sample is chance; many functions of which each has one are not.
    if (f.events <= kFew && rare < kManyRare) continue;
    left -= part(f);
    candidates_[chosen++] = candidates_[i];
  }
  for (std::uint32_t i = chosen; i-- != 0;) {
    const FunctionSample& f = sample[candidates_[i].place];
    const std::uint64_t own = part(f);
    if (left + own <= limit) {
      left += own;
      continue;
    }
    cull(f.function, own, f.longest * 1024 / ticks_per_1024ns_, now);
  }
  return fixed + left <= whole;
}

void Culler::cull(std::uint32_t function, std::uint64_t load, std::uint64_t longest, std::uint64_t now) {
  ++culled_;
  change_(context_, function, true);
  Record* r = record_of(function, true);
  if (r == nullptr) return;  // too many: it stays out until there is no budget any more
  const std::uint64_t stayed = now - r->changed;
  if (r->back_off == 0 || stayed > 4 * r->back_off + kSecond)
    r->back_off = kFirstBackOff;
  else if (r->back_off < kLastBackOff)
    r->back_off *= 2;
  const Idle idle = idle_of_(context_, function);
  const std::uint64_t off = load * idle.part / 1024;
  r->load = load;
  r->idle = static_cast<std::uint32_t>(off < kMillion ? off : kMillion);
  r->can_end = idle.can_end;
  r->changed = now;
  put_into_list(*r);
  if (longest > r->longest) r->longest = longest;
  // It was wrong to bring it back: what that has cost is not to be spent again soon.
  if (on_trial(now)) next_trial_ = now + 500 * kMillisecond;
}

void Culler::adopt(std::uint32_t function, std::uint64_t now) {
  ++culled_;
  Record* r = record_of(function, true);
  if (r == nullptr) return;
  if (r->load == 0) r->load = kMillion;
  if (r->culled == 0) r->idle = 0;
  if (r->back_off == 0) r->back_off = kFirstBackOff;
  r->changed = now;
  if (r->culled == 0) put_into_list(*r);
}

std::uint64_t Culler::believed_load(const Record& r, std::uint64_t now) const {
  const std::uint64_t halvings = (now - r.changed) / r.back_off;
  return halvings > 40 ? 0 : r.load >> (halvings - 1);
}

std::uint32_t Culler::end_heaviest(std::uint32_t most, std::uint32_t* ended, std::uint32_t room) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < listed_; ++i)
    if (const Record& r = records_[culled_list_[i]]; r.can_end && r.idle != 0)
      candidates_[count++] = {r.idle, culled_list_[i]};
  sort(candidates_, count, [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  std::uint32_t n = 0;
  for (; n < count && n < room && idle_ > most; ++n) {
    Record& r = records_[candidates_[n].place];
    take_out_of_list(r);
    ended[n] = r.function;
  }
  culled_ -= n;
  sort(ended, n, [](std::uint32_t a, std::uint32_t b) { return a < b; });
  return n;
}

std::uint32_t Culler::bring_back(std::uint32_t room, std::uint64_t now) {
  if (culled_ == 0 || now < next_trial_) return 0;
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < listed_; ++i) {
    const Record& r = records_[culled_list_[i]];
    if (now - r.changed < r.back_off) continue;
    const std::uint64_t believed = believed_load(r, now);
    if (believed <= room) candidates_[count++] = {believed, culled_list_[i]};
  }
  if (count == 0) return 0;
  sort(candidates_, count, [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  std::uint64_t taken = 0;
  std::uint32_t back = 0;
  for (; back < count && taken + candidates_[back].score <= room; ++back) {
    taken += candidates_[back].score;
    Record& r = records_[candidates_[back].place];
    r.changed = now;
    bring_back(r);
  }
  trial_until_ = now + kTrial;
  return back;
}

void Culler::release(std::uint32_t function) {
  Record* r = record_of(function, false);
  if (r != nullptr && r->culled != 0) {
    r->back_off = 0;
    return bring_back(*r);
  }
  if (culled_ != 0) --culled_;  // there were too many to remember it
  change_(context_, function, false);
}

void Culler::bring_all_back() {
  while (listed_ != 0) {
    Record& r = records_[culled_list_[listed_ - 1]];
    r.back_off = 0;
    bring_back(r);
  }
  culled_ = 0;
}

}  // namespace karst::runtime
