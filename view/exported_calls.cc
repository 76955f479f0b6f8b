#include "view/exported_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "view/protocol.h"

namespace karst::view {
namespace {

constexpr std::uint32_t kMostFunctions = 1U << 24U;

// Columns one after another, each padded to a multiple of 8 bytes.
class Columns {
 public:
  explicit Columns(std::span<const std::byte> bytes) : left_(bytes) {}
  bool sound() const { return sound_; }
  template <typename T>
  std::vector<T> take(std::size_t count) {
    const std::uint64_t size = std::uint64_t{count} * sizeof(T);
    const std::uint64_t padded = (size + 7) / 8 * 8;
    if (!sound_ || padded > left_.size()) {
      sound_ = false;
      return {};
    }
    std::vector<T> values(count);
    if (size != 0) std::memcpy(values.data(), left_.data(), static_cast<std::size_t>(size));
    left_ = left_.subspan(static_cast<std::size_t>(padded));
    return values;
  }

 private:
  std::span<const std::byte> left_;
  bool sound_ = true;
};

// A strip of states as the states that it was drawn from. Where it has none they are not known.
void fill(reader::ThreadStates& states, const reader::Calls& strip) {
  const auto add = [&](std::uint64_t begin, reader::ThreadState state) {
    states.begin.push_back(begin);
    states.state.push_back(state);
  };
  for (std::size_t row = 0; row < strip.size(); ++row) {
    if (row != 0 && states.end < strip.begin[row]) add(states.end, reader::ThreadState::kUnknown);
    add(strip.begin[row], static_cast<reader::ThreadState>(std::min(strip.function[row], 5U)));
    states.end = strip.begin[row] + strip.duration[row];
  }
  states.sum_up();
}

}  // namespace

std::unique_ptr<ExportedCalls> ExportedCalls::read(std::span<const std::byte> bytes) {
  ColumnsHeader header;
  if (bytes.size() < sizeof header) return nullptr;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kColumnsMagic || header.version != kProtocolVersion || header.ticks_per_second == 0 ||
      header.functions > kMostFunctions)
    return nullptr;
  Columns columns(bytes.subspan(sizeof header));
  const auto threads = columns.take<ColumnsThread>(header.threads);
  const auto begin_low = columns.take<std::uint32_t>(header.calls);
  const auto begin_high = columns.take<std::uint32_t>(header.calls);
  const auto duration_low = columns.take<std::uint32_t>(header.calls);
  const auto duration_high = columns.take<std::uint32_t>(header.calls);
  const auto function = columns.take<std::uint32_t>(header.calls);
  const auto parent = columns.take<std::uint32_t>(header.calls);
  const auto depth = columns.take<std::uint16_t>(header.calls);
  const auto flags = columns.take<std::uint8_t>(header.calls);
  if (!columns.sound()) return nullptr;

  auto made = std::make_unique<ExportedCalls>();
  made->clock_.ticks_per_second = header.ticks_per_second;
  made->origin_ = header.origin;
  made->range_ = {header.range_begin, header.range_end};
  made->has_states_ = header.has_states != 0;
  made->function_numbers_.resize(header.functions);
  std::iota(made->function_numbers_.begin(), made->function_numbers_.end(), 0U);
  std::uint64_t left = header.calls;
  for (const ColumnsThread& record : threads) {
    if (std::uint64_t{record.first} + record.count > header.calls || record.count > left) return nullptr;
    left -= record.count;
    reader::Calls calls;
    std::uint64_t now = header.origin;
    for (std::uint32_t row = 0; row < record.count; ++row) {
      const std::size_t at = std::size_t{record.first} + row;
      now += begin_low[at] | std::uint64_t{begin_high[at]} << 32U;
      const bool strip = record.thread >= kColumnsStates;
      if (parent[at] != reader::kNoParent && parent[at] >= row) return nullptr;
      if (!strip && function[at] >= header.functions) return nullptr;
      if (row != 0 && now < calls.begin.back()) return nullptr;
      calls.begin.push_back(now);
      calls.duration.push_back(duration_low[at] | std::uint64_t{duration_high[at]} << 32U);
      calls.function.push_back(function[at]);
      calls.parent.push_back(parent[at]);
      calls.depth.push_back(depth[at]);
      calls.marks.push_back(flags[at]);
    }
    if (record.thread < kColumnsStates) {
      auto thread = std::make_unique<Thread>();
      thread->number = record.thread;
      thread->owned = std::move(calls);
      thread->calls = {query::CallColumns(thread->owned), record.forked_at, nullptr};
      made->threads_.push_back(std::move(thread));
    } else if (record.thread < kColumnsCpus) {
      for (const auto& thread : made->threads_) {
        if (thread->number != record.thread - kColumnsStates || thread->calls.states != nullptr) continue;
        fill(thread->states, calls);
        thread->calls.states = &thread->states;
      }
    }
  }
  return made;
}

query::Scope ExportedCalls::empty_scope() const {
  query::Scope scope;
  scope.functions = function_numbers_.size();
  scope.has_states = has_states_;
  return scope;
}

void ExportedCalls::add(query::Scope& scope, const Thread& thread, query::RowRange rows) const {
  scope.parts.push_back({&thread.calls, thread.number, std::move(rows), function_numbers_});
}

query::Scope ExportedCalls::scope(const std::vector<std::uint32_t>* threads, double begin, double end) const {
  query::Scope scope = empty_scope();
  query::TickRange range = range_;
  const auto tick = [&](double ns) {
    const double ticks = std::ceil(ns * static_cast<double>(clock_.ticks_per_second) / 1e9);
    return origin_ + static_cast<std::uint64_t>(std::clamp(ticks, 0.0, 9e18));
  };
  if (std::isfinite(begin)) range.begin = std::max(range.begin, tick(begin));
  if (std::isfinite(end)) range.end = std::min(range.end, tick(end));
  for (const auto& thread : threads_) {
    if (threads == nullptr || std::find(threads->begin(), threads->end(), thread->number) != threads->end())
      add(scope, *thread, query::rows_in(thread->calls.calls, range));
  }
  return scope;
}

query::Scope ExportedCalls::scope(ExportedCall call) const {
  query::Scope scope = empty_scope();
  for (const auto& thread : threads_) {
    if (thread->number == call.thread && call.row < thread->owned.size())
      add(scope, *thread, query::rows_of_call(thread->calls.calls, call.row));
  }
  return scope;
}

}  // namespace karst::view
