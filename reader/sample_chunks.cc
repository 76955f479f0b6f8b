// SPDX-License-Identifier: MIT
#include "reader/sample_chunks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "reader/records.h"

namespace karst::reader {
namespace {

using format::ChunkType;

class SampleReader {
 public:
  explicit SampleReader(ProblemList& problems) : problems_(problems) {}

  SampleLog read(const ChunkList& list) {
    // A stack names functions and other stacks, a sample names a stack.
    for (const Chunk& chunk : list.chunks) {
      if (chunk.type == ChunkType::kSampleSource)
        each_record<format::SampleSourceRecord>(chunk, problems_,
                                                [this](const auto& t, const auto& r) { add_source(t, r); });
      else if (chunk.type == ChunkType::kSampledFunctions)
        each_record<format::SampledFunctionRecord>(chunk, problems_,
                                                   [this](const auto& t, const auto& r) { add_function(t, r); });
    }
    for (const Chunk& chunk : list.chunks)
      if (chunk.type == ChunkType::kSampledStacks)
        each_record<format::SampledStackRecord>(chunk, problems_, [this](const auto&, const auto& r) { add_stack(r); });
    read_samples(list, ChunkType::kSamples, log_.samples);
    read_samples(list, ChunkType::kSampledWaits, log_.waits);
    if (!have_source_ && log_.samples.size() + log_.waits.size() != 0) {
      problems_.add("samples", [] {
        return std::string("nothing says how much time a sample stands for; samples were left out");
      });
      log_ = {};
    }
    return std::move(log_);
  }

 private:
  void read_samples(const ChunkList& list, ChunkType type, Column<format::SampleRecord>& samples) {
    for (const Chunk& chunk : list.chunks)
      if (chunk.type == type)
        each_record<format::SampleRecord>(chunk, problems_,
                                          [&](const auto&, const auto& r) { add_sample(r, samples); });
    const auto earlier = [](const format::SampleRecord& a, const format::SampleRecord& b) { return a.ticks < b.ticks; };
    if (!std::is_sorted(samples.begin(), samples.end(), earlier))
      std::stable_sort(samples.begin(), samples.end(), earlier);
  }

  template <typename Record>
  std::string text(const Table<Record>& table, format::StringRef ref) {
    constexpr std::size_t kMostTexts = std::size_t{256} << 20;  // one may stand in many records
    const auto found = table.text(ref);
    if (!found || texts_ + found->size() > kMostTexts) {
      problems_.add("sample text", [] { return std::string("a text of samples cannot be read; it was left empty"); });
      return {};
    }
    texts_ += found->size();
    return std::string(*found);
  }

  void add_source(const Table<format::SampleSourceRecord>& table, const format::SampleSourceRecord& r) {
    constexpr std::uint64_t kLongest = 3'600'000'000'000;  // sums of them fit in 64 bits
    if (have_source_ || r.period_ns == 0 || r.period_ns > kLongest) {
      problems_.add("sample source",
                    [] { return std::string("a record of how code was sampled cannot be used; it was skipped"); });
      return;
    }
    have_source_ = true;
    log_.source = {r.period_ns, r.begin_ticks, r.end_ticks,      r.lost,
                   r.unread,    r.flags,       r.waits_left_out, text(table, r.note)};
  }

  void add_function(const Table<format::SampledFunctionRecord>& table, const format::SampledFunctionRecord& r) {
    log_.functions.push_back(
        {text(table, r.module), {}, r.address, r.size, r.line, text(table, r.name), text(table, r.file), 0});
  }

  void add_stack(format::SampledStackRecord r) {
    if (r.caller > log_.stacks.size() || r.function >= log_.functions.size()) {
      problems_.add("sampled stack",
                    [] { return std::string("a sampled stack names what is not there; it ends there"); });
      if (r.caller > log_.stacks.size()) r.caller = 0;
      if (r.function >= log_.functions.size()) {
        if (no_function_ == 0) {
          log_.functions.push_back({"", "", 0, 0, 0, "unknown", "", 0});
          no_function_ = log_.functions.size();
        }
        r.function = static_cast<std::uint32_t>(no_function_ - 1);
      }
    }
    log_.stacks.push_back(r);
  }

  void add_sample(format::SampleRecord r, Column<format::SampleRecord>& samples) {
    if (r.stack > log_.stacks.size()) {
      problems_.add("sample", [] { return std::string("a sample names a stack that is not there"); });
      r.stack = 0;
    }
    samples.push_back(r);
  }

  ProblemList& problems_;
  SampleLog log_;
  bool have_source_ = false;
  std::size_t no_function_ = 0;  // 1 + its place
  std::size_t texts_ = 0;
};

}  // namespace

SampleLog excerpt_samples(const SampleLog& log, std::uint64_t begin, std::uint64_t end) {
  SampleLog part;
  part.source = log.source;
  part.source.begin_ticks = std::max(log.source.begin_ticks, begin);
  part.source.end_ticks = std::min(log.source.end_ticks, end);
  std::vector<bool> used(log.stacks.size() + 1);  // by 1 + place
  const auto take = [&](const format::SampleRecord& sample, Column<format::SampleRecord>& taken) {
    taken.push_back(sample);
    for (std::uint32_t at = sample.stack; at != 0 && !used[at]; at = log.stacks[at - 1].caller) used[at] = true;
  };
  for (const format::SampleRecord& sample : log.samples)
    if (sample.ticks >= begin && sample.ticks < end) take(sample, part.samples);
  // Who left its CPU before the begin may wait until after it.
  const auto of_part = [&](std::uint64_t ticks) {
    return static_cast<std::size_t>(
        std::partition_point(log.waits.begin(), log.waits.end(), [&](const auto& wait) { return wait.ticks < ticks; }) -
        log.waits.begin());
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> latest;  // by process and thread
  const std::size_t first = of_part(begin);
  for (std::size_t i = 0; i < first; ++i) latest[{log.waits[i].pid, log.waits[i].tid}] = i;
  std::set<std::size_t> before;
  for (const auto& [thread, wait] : latest) before.insert(wait);
  for (const std::size_t wait : before) take(log.waits[wait], part.waits);
  for (std::size_t i = first, last = of_part(end); i < last; ++i) take(log.waits[i], part.waits);
  std::vector<std::uint32_t> stack_now(log.stacks.size() + 1), function_now(log.functions.size());
  for (std::uint32_t at = 1; at <= log.stacks.size(); ++at) {
    if (!used[at]) continue;
    const format::SampledStackRecord& stack = log.stacks[at - 1];
    if (function_now[stack.function] == 0) {
      part.functions.push_back(log.functions[stack.function]);
      function_now[stack.function] = static_cast<std::uint32_t>(part.functions.size());
    }
    part.stacks.push_back({stack_now[stack.caller], function_now[stack.function] - 1});
    stack_now[at] = static_cast<std::uint32_t>(part.stacks.size());
  }
  for (auto* const samples : {&part.samples, &part.waits})
    for (format::SampleRecord& sample : *samples) sample.stack = stack_now[sample.stack];
  return part;
}

SampleLog read_samples(const ChunkList& list, ProblemList& problems) { return SampleReader(problems).read(list); }

}  // namespace karst::reader
