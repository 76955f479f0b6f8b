// What a call took lies among its thread's allocations between its begin and its end, which bisection finds. A signal
// handler's or a fiber's may lie there, too: rows tell whose they are.
#include "engine/api/memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/index/noted_threads.h"
#include "format/memory.h"
#include "format/note.h"

namespace karst::engine {
namespace {

using analysis::MemoryAllocation;

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
  void write(Json& json) const {
    const auto whole = [](double number) { return static_cast<std::uint64_t>(std::llround(number)); };
    const auto margin = [&](double of) { return whole(1.96 * std::sqrt(of)); };  // 95 of 100 are within
    json.field("allocations", whole(count)).field("bytes", whole(bytes)).field("bytes_margin", margin(variance));
    json.field("left", whole(left)).field("left_bytes", whole(left_bytes));
    json.field("left_margin", margin(left_variance)).field("unknown", unknown);
  }
};

}  // namespace

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
  std::vector<std::pair<std::uint32_t, Taken>> functions(by_function.begin(), by_function.end());
  std::stable_sort(functions.begin(), functions.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  // Of a call that is not whole here some is not there.
  bool whole = !reader::call_is_open(thread.calls.marks[call.row]);
  if (index.part()) whole &= call.begin >= index.part()->range.begin && end <= index.part()->range.end;
  json.open('{').field("sampled", known->mean).field("whole", whole);
  sum.write(json);
  json.key("functions").open('[');
  for (std::size_t i = 0; i < functions.size() && i < kMaxTakers; ++i) {
    json.open('{').field("function", functions[i].first);
    functions[i].second.write(json);
    json.close('}');
  }
  json.close(']').field("more_functions", functions.size() - std::min(functions.size(), kMaxTakers)).close('}');
}

}  // namespace karst::engine
