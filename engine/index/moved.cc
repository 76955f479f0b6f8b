// SPDX-License-Identifier: MIT
// Rows of a thread are in order of their begin, and a file grows at its end: so the rows of an index are the first ones
// of a later one, unless that leaves out older calls. Three rows of each thread tell which it is.
#include "engine/index/moved.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace karst::engine {
namespace {

using ThreadKey = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t, bool>;

ThreadKey key_of(const TraceIndex& index, const ThreadIndex& thread) {
  const reader::Process& process = index.trace().processes()[thread.thread->process];
  const reader::Thread& of = *thread.thread;
  return {process.pid, process.start_ticks, of.tid, of.joined_ticks, of.fiber};
}

std::string_view text_of(const std::vector<std::string>& texts, std::int64_t number) {
  return number < 0 ? std::string_view() : std::string_view(texts[static_cast<std::size_t>(number)]);
}

// Whether all functions of `before` have their numbers now.
bool same_functions(const FunctionList& before, const FunctionList& now) {
  if (before.functions().size() > now.functions().size()) return false;
  for (std::size_t i = 0; i < before.functions().size(); ++i) {
    const FunctionInfo& a = before.functions()[i];
    const FunctionInfo& b = now.functions()[i];
    // One without a name yet has one later.
    if (a.occurs && (a.name != b.name || a.line != b.line)) return false;
    if (a.occurs && text_of(before.files(), a.file) != text_of(now.files(), b.file)) return false;
    if (a.occurs && text_of(before.modules(), a.module) != text_of(now.modules(), b.module)) return false;
  }
  return true;
}

}  // namespace

Moved::Moved(const TraceIndex& before, const TraceIndex& now) : before_(before), now_(now) {
  std::map<ThreadKey, std::uint32_t> known;
  for (std::size_t i = 0; i < now.threads().size(); ++i)
    known.emplace(key_of(now, now.threads()[i]), static_cast<std::uint32_t>(i));
  for (std::size_t i = 0; i < before.threads().size(); ++i) {
    const auto found = known.find(key_of(before, before.threads()[i]));
    threads_.push_back(found == known.end() ? -1 : static_cast<std::int64_t>(found->second));
    same_threads_ = same_threads_ && threads_.back() == static_cast<std::int64_t>(i);
    is_other_ = is_other_ && threads_.back() < 0;
  }
  if (before.threads().empty()) is_other_ = false;
  same_threads_ = same_threads_ && same_functions(before.functions(), now.functions());
  same_calls_ = same_threads_;
  for (std::size_t i = 0; i < before.threads().size() && same_calls_; ++i) {
    const ThreadIndex& a = before.threads()[i];
    const ThreadIndex& b = now.threads()[i];
    const std::size_t rows = a.calls.size();
    same_calls_ = rows <= b.calls.size() &&
                  (rows == 0 || (same_row(a, b, 0) && same_row(a, b, rows / 2) && same_row(a, b, rows - 1)));
  }
}

bool Moved::same_row(const ThreadIndex& before, const ThreadIndex& now, std::size_t row) const {
  return before.calls.begin[row] == now.calls.begin[row] && before.calls.function[row] == now.calls.function[row];
}

double Moved::shift_ns() const {
  const std::uint64_t a = before_.origin();
  const std::uint64_t b = now_.origin();
  return b >= a ? now_.to_ns(static_cast<double>(b - a)) : -now_.to_ns(static_cast<double>(a - b));
}

std::optional<std::uint32_t> Moved::thread(std::uint32_t number) const {
  if (number >= threads_.size() || threads_[number] < 0) return std::nullopt;
  return static_cast<std::uint32_t>(threads_[number]);
}

std::optional<std::uint32_t> Moved::row(std::uint32_t thread, std::uint32_t row) const {
  const auto number = this->thread(thread);
  if (!number || row >= before_.threads()[thread].calls.size()) return std::nullopt;
  const CallColumns& of = before_.threads()[thread].calls;
  const CallColumns& calls = now_.threads()[*number].calls;
  const auto begin = std::lower_bound(calls.begin.begin(), calls.begin.end(), of.begin[row]);
  for (auto at = begin; at != calls.begin.end() && *at == of.begin[row]; ++at) {
    const auto found = static_cast<std::size_t>(at - calls.begin.begin());
    if (calls.function[found] == of.function[row] && calls.depth[found] == of.depth[row])
      return static_cast<std::uint32_t>(found);
  }
  return std::nullopt;
}

}  // namespace karst::engine
