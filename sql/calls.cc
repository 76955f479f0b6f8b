// SPDX-License-Identifier: MIT
#include "sql/calls.h"

#include <array>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <optional>
#include <utility>

#include "analysis/selection.h"
#include "analysis/values.h"
#include "analysis/waits.h"
#include "answers/calls.h"
#include "columns/scope.h"
#include "columns/selection.h"
#include "sql/gathered.h"

namespace karst::sql {
namespace {

using answers::field;
using answers::Field;
using answers::field_if_known;
using answers::Relation;
using answers::Type;

constexpr std::uint32_t kPieceCalls = 1U << 16U;

/// What a query takes of calls that costs something to come by.
struct Needs {
  bool place = false, values = false, self = false, states = false;
};

/// A thread's calls while they are gone through.
struct ThreadCalls {
  const reader::Thread& thread;
  std::shared_ptr<const reader::Calls> shared;
  const reader::Calls& calls = *shared;
  columns::CallColumns columns;
  std::vector<std::uint64_t> self;  ///< ticks, by row; empty: not needed
  std::optional<analysis::CallValues> values;
  std::uint32_t next = 0;  ///< row that nobody has yet

  ThreadCalls(const reader::Thread& of, std::shared_ptr<const reader::Calls> made, const Needs& needs)
      : thread(of), shared(std::move(made)), columns(calls) {
    if (needs.values) values.emplace(calls);
    if (needs.self) add_self();
  }

 private:
  void add_self() {
    self.resize(calls.size());
    for (std::uint32_t row = 0; row < calls.size(); ++row) {
      const std::uint64_t time = calls.time(row);
      self[row] += time;
      if (calls.parent[row] != reader::kNoParent) self[calls.parent[row]] -= time;
    }
  }
};

struct CallRow : answers::CallRow {
  const ThreadCalls* of = nullptr;
  const reader::Clock* clock = nullptr;
  std::uint32_t row = 0;
  std::uint64_t first_id = 0;
  std::optional<reader::StateTimes> states;

  std::uint64_t id(std::uint32_t at) const { return first_id + at; }
  /// The nearest that is a row of the table.
  std::optional<std::uint64_t> parent() const {
    std::uint32_t at = of->calls.parent[row];
    while (at != reader::kNoParent && !columns::is_counted(of->calls.marks[at])) at = of->calls.parent[at];
    return at == reader::kNoParent ? std::nullopt : std::optional(id(at));
  }
  std::uint64_t last() const { return id(columns::subtree_end(of->columns, row) - 1); }
  /// What clocks that stray, or the tracer's cost, have made less than nothing is nothing.
  std::uint64_t self_ns() const {
    const auto ticks = static_cast<std::int64_t>(of->self[row]);
    return ticks < 0 ? 0 : clock->to_ns(static_cast<std::uint64_t>(ticks));
  }
  std::optional<std::uint64_t> part(std::uint64_t reader::StateTimes::*which) const {
    return states ? std::optional(clock->to_ns((*states).*which)) : std::nullopt;
  }
};

Field part_of_call(const char* key, const char* sentence, std::uint64_t reader::StateTimes::*which) {
  return field_if_known<CallRow>(key, Type::kDuration, sentence, [which](const CallRow& r) { return r.part(which); });
}

/// Rows of one thread, made as they are asked for.
class CallPiece final : public Piece {
 public:
  CallPiece(const Source& source, std::uint64_t start, const Needs& needs, std::shared_ptr<const ThreadCalls> of,
            std::uint64_t first_id, std::uint32_t first, std::uint32_t end)
      : source_(source), start_(start), needs_(needs), of_(std::move(of)), next_(first), end_(end) {
    row_.of = of_.get();
    row_.clock = &source.trace.clock();
    row_.thread = &of_->thread;
    row_.first_id = first_id;
    if (needs.states) states_ = analysis::StateThreads(source.trace).states_of(of_->thread);
  }

  const void* next() override {
    const reader::Calls& calls = of_->calls;
    while (next_ != end_ && !columns::is_counted(calls.marks[next_])) ++next_;
    if (next_ == end_) return nullptr;
    const std::uint32_t row = next_++;
    const std::uint32_t parent = calls.parent[row];
    row_.row = row;
    row_.function = calls.function[row];
    row_.caller = parent == reader::kNoParent ? 0 : calls.function[parent];
    row_.begin_ns = calls.begin[row] > start_ ? row_.clock->to_ns(calls.begin[row] - start_) : 0;
    row_.duration_ns = row_.clock->to_ns(calls.time(row));
    row_.open_begin = (calls.marks[row] & reader::kCallOpenBegin) != 0;
    row_.open_end = (calls.marks[row] & reader::kCallOpenEnd) != 0;
    if (needs_.place) write_place();
    if (needs_.values) note_values();
    if (states_ != nullptr) note_states();
    return &row_;
  }

 private:
  /// `10@3000ns`
  void write_place() {
    char* at = std::to_chars(place_.data(), place_.data() + place_.size(), of_->thread.tid).ptr;
    *at++ = '@';
    at = std::to_chars(at, place_.data() + place_.size(), row_.begin_ns).ptr;
    *at++ = 'n';
    *at++ = 's';
    row_.place = std::string_view(place_.data(), at);
  }
  std::string text_of(const reader::Note* note) const {
    return note == nullptr ? std::string()
                           : analysis::values_text(analysis::values_in(source_.trace, of_->thread, of_->calls, *note));
  }
  void note_values() {
    row_.arguments = arguments_ = text_of(of_->values->arguments(row_.row));
    row_.returned = returned_ = text_of(of_->values->returned(row_.row));
  }
  void note_states() {
    const reader::Calls& calls = of_->calls;
    const std::uint64_t begin = calls.begin[row_.row];
    row_.states = reader::states_between(states_, begin, begin + calls.duration[row_.row], begin_hint_, end_hint_);
    columns::take_cost_out(*row_.states, calls.cost(row_.row));
  }

  const Source& source_;
  const std::uint64_t start_;  // ticks of the trace's first event
  const Needs needs_;
  std::shared_ptr<const ThreadCalls> of_;
  std::uint32_t next_, end_;
  CallRow row_;
  std::array<char, 48> place_;
  std::string arguments_, returned_;
  const reader::ThreadStates* states_ = nullptr;
  std::size_t begin_hint_ = 0, end_hint_ = 0;
};

/// Threads are rebuilt by who asks for rows when there are none: several at a time, each by one.
class CallScan final : public Scan {
 public:
  CallScan(Gathered& gathered, const Needs& needs, ThreadChoice threads)
      : gathered_(gathered),
        source_(gathered.source()),
        start_(analysis::first_ticks(source_.trace)),
        needs_(needs),
        threads_(std::move(threads)) {
    for (const reader::Thread* thread : source_.threads)
      if (threads_.takes(*thread)) source_.work->total += kReadings * source_.events_of(*thread);
  }

  std::unique_ptr<Piece> next() override {
    source_.work->check();
    std::unique_lock lock(mutex_);
    while (true) {
      if (auto piece = take()) return piece;
      while (started_ < source_.threads.size() && !threads_.takes(*source_.threads[started_])) ++started_;
      if (started_ < source_.threads.size()) {
        rebuild(lock, started_++);
      } else if (being_rebuilt_ == 0) {
        return nullptr;
      } else {
        changed_.wait(lock);
      }
    }
  }

 private:
  /// Calls are rebuilt, and then made rows of.
  static constexpr std::uint64_t kReadings = 2;

  struct Ready {
    std::shared_ptr<ThreadCalls> calls;
    std::uint64_t first_id;
    std::uint64_t events;
  };

  std::unique_ptr<Piece> take() {
    while (!ready_.empty()) {
      Ready& ready = ready_.front();
      const auto size = static_cast<std::uint32_t>(ready.calls->calls.size());
      const std::uint32_t first = ready.calls->next;
      if (first == size) {
        ready_.pop_front();
        continue;
      }
      const std::uint32_t end = size - first > kPieceCalls ? first + kPieceCalls : size;
      ready.calls->next = end;
      source_.work->done += ready.events * (end - first) / size;
      return std::make_unique<CallPiece>(source_, start_, needs_, ready.calls, ready.first_id, first, end);
    }
    return nullptr;
  }

  void rebuild(std::unique_lock<std::mutex>& lock, std::size_t at) {
    ++being_rebuilt_;
    lock.unlock();
    std::shared_ptr<ThreadCalls> made;
    std::exception_ptr thrown;
    try {
      made = std::make_shared<ThreadCalls>(*source_.threads[at], calls_of(at), needs_);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    --being_rebuilt_;
    if (made != nullptr) {
      const std::uint64_t events = source_.events_of(made->thread);
      ready_.push_back({std::move(made), first_call_id(source_, at), events});
    }
    changed_.notify_all();
    if (thrown != nullptr) std::rethrow_exception(thrown);
  }

  /// What is gathered by the way needs all threads, one after the other.
  std::shared_ptr<const reader::Calls> calls_of(std::size_t at) {
    if (threads_.takes_all()) return gathered_.calls_of(at);
    auto calls = std::make_shared<reader::Calls>(source_.rebuild(*source_.threads[at]));
    source_.choose(*source_.threads[at], *calls);
    return calls;
  }

  static std::uint64_t first_call_id(const Source& source, std::size_t thread) {
    return (std::uint64_t{source.first_thread} + thread + 1) << 32U;
  }

  Gathered& gathered_;
  const Source& source_;
  const std::uint64_t start_;
  const Needs needs_;
  const ThreadChoice threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Ready> ready_;
  std::size_t started_ = 0, being_rebuilt_ = 0;
};

/// The id is first, as it costs least: count(*) takes the first column.
Relation relation_of_calls() {
  Relation relation = answers::calls();
  std::vector<Field>& fields = relation.fields;
  fields.insert(fields.begin(),
                field<CallRow>("id", Type::kNumber, "of the call; calls below it have ids above it, up to last",
                               [](const CallRow& r) { return r.id(r.row); }));
  const auto add = [&](Field field) { fields.push_back(std::move(field)); };
  add(field_if_known<CallRow>("parent", Type::kNumber, "id of the call that it was made in; none: no traced one",
                              [](const CallRow& r) { return r.parent(); }));
  add(field<CallRow>("last", Type::kNumber, "the greatest id of the calls below it; its own where there are none",
                     [](const CallRow& r) { return r.last(); }));
  add(field<CallRow>("depth", Type::kNumber, "how many traced calls it was made in",
                     [](const CallRow& r) { return r.of->calls.depth[r.row]; }));
  add(field<CallRow>("end", Type::kTime,
                     "after the trace's first event; what tracing took lies before it, and is not in the duration",
                     [](const CallRow& r) { return r.begin_ns + r.clock->to_ns(r.of->calls.duration[r.row]); }));
  add(field<CallRow>("self", Type::kDuration, "without the traced calls that it made",
                     [](const CallRow& r) { return r.self_ns(); }));
  add(part_of_call("cpu", "the part of duration on a CPU (with thread states: karst run --sched)",
                   &reader::StateTimes::running));
  add(part_of_call("runnable", "the part of duration in which it could run, but had no CPU",
                   &reader::StateTimes::runnable));
  add(part_of_call("blocked", "the part of duration in which it waited: for a lock, a disk, another thread",
                   &reader::StateTimes::blocked));
  return relation;
}

}  // namespace

const Relation& calls() {
  static const Relation relation = relation_of_calls();
  return relation;
}

std::unique_ptr<Scan> scan_calls(Gathered& gathered, const Fields& fields, const ThreadChoice& threads) {
  const Relation& relation = calls();
  const auto takes = [&](const char* key) {
    return static_cast<bool>(fields[static_cast<std::size_t>(relation.find(key) - relation.fields.data())]);
  };
  Needs needs;
  needs.place = takes("call");
  needs.values = takes("arguments") || takes("returned");
  needs.self = takes("self");
  needs.states = takes("cpu") || takes("runnable") || takes("blocked");
  return std::make_unique<CallScan>(gathered, needs, threads);
}

}  // namespace karst::sql
