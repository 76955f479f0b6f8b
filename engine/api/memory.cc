// SPDX-License-Identifier: MIT
// What a call took lies among its thread's allocations between its begin and its end, which bisection finds. A signal
// handler's or a fiber's may lie there, too: rows tell whose they are.
#include "engine/api/memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/api/rows.h"
#include "engine/index/noted_threads.h"
#include "format/memory.h"
#include "format/note.h"

namespace karst::engine {
namespace {

using analysis::MemoryAllocation;
using answers::Field;
using answers::field;
using answers::Relation;
using answers::Type;

struct Taken {
  double count = 0, bytes = 0;             // estimates where allocations were sampled
  double left = 0, left_bytes = 0;         // still there at the call's end
  double variance = 0, left_variance = 0;  // of the bytes
  std::uint64_t unknown = 0;               // it may have been freed unseen

  void add(const MemoryAllocation& one, std::uint64_t end) {
    count += one.weight;
    bytes += one.bytes();
    variance += one.variance();
    if (one.freed <= end) return;
    if (!one.known) {
      ++unknown;
      return;
    }
    left += one.weight;
    left_bytes += one.bytes();
    left_variance += one.variance();
  }
};

std::uint64_t whole(double number) { return static_cast<std::uint64_t>(std::llround(number)); }

/// Fields of a row that has a Taken.
template <typename Row>
std::vector<Field> fields_of_taken() {
  const auto amount = [](const char* key, Type type, const char* sentence, double Taken::*of) {
    return field<Row>(key, type, sentence, [of](const Row& r) { return whole(r.taken.*of); });
  };
  const auto margin = [](const char* key, const char* sentence, double Taken::*variance) {  // 95 of 100 are within
    return field<Row>(key, Type::kBytes, sentence,
                      [variance](const Row& r) { return whole(1.96 * std::sqrt(r.taken.*variance)); });
  };
  return {amount("allocations", Type::kCount, "how often memory was taken", &Taken::count),
          amount("bytes", Type::kBytes, "that were taken", &Taken::bytes),
          margin("bytes_margin", "how far that may be off: 95 of 100 estimates are within", &Taken::variance),
          amount("left", Type::kCount, "allocations that were not freed by the end of the call", &Taken::left),
          amount("left_bytes", Type::kBytes, "of those", &Taken::left_bytes),
          margin("left_margin", "how far that may be off", &Taken::left_variance),
          field<Row>("unknown", Type::kCount, "recorded ones of which nobody knows whether they were freed",
                     [](const Row& r) { return r.taken.unknown; })};
}

struct TakerRow {
  std::uint32_t function;
  Taken taken;
};

const Relation& takers() {
  static const Relation relation = [] {
    Relation made{"takers", "taker", "A row for each function that took memory itself, within a call",
                  fields_of_taken<TakerRow>()};
    made.fields.push_back(field<TakerRow>("function", Type::kNumber, "in TraceInfo.functions",
                                          [](const TakerRow& r) { return r.function; }));
    return made;
  }();
  return relation;
}

struct MemoryAnswer {
  std::uint64_t sampled;
  bool whole;
  Taken taken;
  std::vector<TakerRow> functions;
};

}  // namespace

const Relation& memory_answers() {
  using Row = MemoryAnswer;
  static const Relation relation = [] {
    Relation made{"call_memories", "call_memory", "What a call took of memory", fields_of_taken<Row>()};
    made.fields.push_back(field<Row>("sampled", Type::kBytes, "one allocation in so many bytes was recorded; 0: all",
                                     [](const Row& r) { return r.sampled; }));
    made.fields.push_back(field<Row>("whole", Type::kFlag,
                                     "whether the trace has all of the call; what it has is counted",
                                     [](const Row& r) { return r.whole; }));
    made.fields.push_back(
        answers::rows<Row>("functions", "those that took most", takers(), [](const Row& r, const answers::UseRow& use) {
          for (std::size_t i = 0; i < r.functions.size() && i < kMaxTakers; ++i) use(&r.functions[i]);
        }));
    made.fields.push_back(field<Row>("more_functions", Type::kCount, "that are left out", [](const Row& r) {
      return r.functions.size() - std::min(r.functions.size(), kMaxTakers);
    }));
    return made;
  }();
  return relation;
}

bool Memory::has(const TraceIndex& index) {
  for (const reader::Process& process : index.trace().processes())
    for (const reader::Function& function : process.functions)
      if (function.note && function.values == format::kAllocated) return true;
  return false;
}

std::shared_ptr<const Memory::Known> Memory::find(const TraceIndex& index, Work* work) {
  const std::lock_guard lock(mutex_);
  if (const auto at = known_.find(&index); at != known_.end()) return at->second;
  auto made = std::make_shared<Known>();
  made->of_thread.resize(index.threads().size());
  const auto has_records = [](const ThreadIndex& thread) { return thread.has_notes(format::NoteKind::kRecord); };
  analysis::MemoryFinder finder(index.trace());
  finder.keep_allocations();
  std::vector<std::uint32_t> added;
  for (const ThreadIndex& thread : index.threads())
    if (has_records(thread)) expect(work, thread.calls.size());
  for (std::uint32_t number = 0; number < index.threads().size(); ++number) {
    const ThreadIndex& thread = index.threads()[number];
    if (!has_records(thread)) continue;
    const NotedCalls calls = noted_calls(index, thread, work);
    if (calls.calls == nullptr || !go_on(work, thread.calls.size())) return nullptr;
    finder.add(*thread.thread, *calls.calls, nullptr);
    added.push_back(number);
  }
  analysis::MemoryUse use = finder.take(std::numeric_limits<std::uint64_t>::max());
  made->mean = use.mean;
  for (std::size_t i = 0; i < added.size(); ++i) made->of_thread[added[i]] = std::move(use.allocations[i]);
  return known_[&index] = std::move(made);
}

void Memory::write(Json& json, const TraceIndex& index, const CallPlace& call, Work* work) {
  const auto known = find(index, work);
  if (known == nullptr) return;
  const ThreadIndex& thread = index.threads()[call.thread];
  const std::uint32_t last = subtree_end(thread.calls, call.row);
  const std::uint64_t end = call.begin + call.duration;
  const std::vector<MemoryAllocation>& all = known->of_thread[call.thread];
  const auto first =
      std::partition_point(all.begin(), all.end(), [&](const MemoryAllocation& one) { return one.ticks < call.begin; });
  Taken sum;
  std::map<std::uint32_t, Taken> by_function;
  for (auto at = first; at != all.end() && at->ticks <= end; ++at) {
    if (at->row < call.row || at->row >= last) continue;
    sum.add(*at, end);
    by_function[index.function_of(thread, at->row)].add(*at, end);
  }
  // Of a call that is not whole here some is not there.
  bool whole = !reader::call_is_open(thread.calls.marks[call.row]);
  if (index.part()) whole &= call.begin >= index.part()->range.begin && end <= index.part()->range.end;
  MemoryAnswer answer{known->mean, whole, sum, {}};
  for (const auto& [function, taken] : by_function) answer.functions.push_back({function, taken});
  std::stable_sort(answer.functions.begin(), answer.functions.end(),
                   [](const TakerRow& a, const TakerRow& b) { return a.taken.bytes > b.taken.bytes; });
  json.open('{');
  write_row(json, index, memory_answers(), &answer);
  json.close('}');
}

}  // namespace karst::engine
