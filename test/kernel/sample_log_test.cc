// Samples in a file: written and read they are the same, a part of them is what a naive count says, and files that say
// what nobody would write have stacks that end.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "reader/sample_chunks.h"
#include "reader/trace.h"
#include "write/trace_writer.h"

namespace karst::test {
namespace {

using reader::SampleLog;

SampleLog random_log(std::mt19937& random) {
  SampleLog log;
  log.source = {1'000'000, 100, 5000, random() % 10, random() % 3, format::kSamplesKernel, random() % 5, "a note"};
  const std::size_t functions = 1 + random() % 20;
  for (std::size_t i = 0; i < functions; ++i)
    log.functions.push_back({"/lib/" + std::to_string(random() % 3), "", random() % 1000,
                             static_cast<std::uint32_t>(1 + random() % 50), static_cast<std::uint32_t>(random() % 9),
                             "f" + std::to_string(i), "f.c"});
  const std::size_t stacks = random() % 40;
  for (std::uint32_t i = 0; i < stacks; ++i)
    log.stacks.push_back(
        {static_cast<std::uint32_t>(random() % (i + 1)), static_cast<std::uint32_t>(random() % functions)});
  std::uint64_t ticks = 100;
  for (std::size_t i = random() % 300; i != 0; --i) {
    ticks += random() % 40;
    (random() % 3 == 0 ? log.waits : log.samples)
        .push_back({ticks, static_cast<std::uint32_t>(random() % 4), 1,
                    static_cast<std::uint32_t>(random() % (stacks + 1)), static_cast<std::uint16_t>(random() % 2),
                    static_cast<std::uint16_t>(random() % 4)});
  }
  return log;
}

std::vector<std::byte> written(const SampleLog& log) {
  std::vector<std::byte> bytes;
  auto writer = writing::TraceWriter::to_memory(bytes);
  reader::Process process;
  process.pid = 1;
  writer.add_processes(std::span(&process, 1));
  writer.add_samples(log);
  EXPECT_TRUE(writer.finish());
  return bytes;
}

/// Names of a sample's frames, innermost first, and when and where it was.
std::vector<std::string> told(const SampleLog& log, const format::SampleRecord& sample) {
  std::vector<std::string> all = {std::to_string(sample.ticks), std::to_string(sample.tid),
                                  std::to_string(sample.flags)};
  for (std::uint32_t at = sample.stack; at != 0; at = log.stacks[at - 1].caller)
    all.push_back(log.functions[log.stacks[at - 1].function].name);
  return all;
}

TEST(Samples, AreTheSameWhenTheyAreReadAgain) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    const SampleLog log = random_log(random);
    const auto bytes = written(log);
    const auto trace = reader::Trace::open_memory(bytes, "samples.karst");
    ASSERT_TRUE(trace);
    for (const reader::Problem& problem : trace->problems())
      EXPECT_EQ(problem.message.find("sample"), std::string::npos) << problem.message;
    const SampleLog& read = trace->samples();
    EXPECT_EQ(read.source.period_ns, log.source.period_ns);
    EXPECT_EQ(read.source.lost, log.source.lost);
    EXPECT_EQ(read.source.unread, log.source.unread);
    EXPECT_EQ(read.source.flags, log.source.flags);
    EXPECT_EQ(read.source.waits_left_out, log.source.waits_left_out);
    EXPECT_EQ(read.source.note, log.source.note);
    ASSERT_EQ(read.functions.size(), log.functions.size());
    for (std::size_t i = 0; i < log.functions.size(); ++i) {
      EXPECT_EQ(read.functions[i].module, log.functions[i].module);
      EXPECT_EQ(read.functions[i].address, log.functions[i].address);
      EXPECT_EQ(read.functions[i].size, log.functions[i].size);
      EXPECT_EQ(read.functions[i].line, log.functions[i].line);
    }
    for (const auto kind : {&SampleLog::samples, &SampleLog::waits}) {
      ASSERT_EQ((read.*kind).size(), (log.*kind).size());
      for (std::size_t i = 0; i < (log.*kind).size(); ++i)
        EXPECT_EQ(told(read, (read.*kind)[i]), told(log, (log.*kind)[i]));
    }
  }
}

TEST(Samples, OfAPartAreThoseInIt) {
  std::mt19937 random(6);
  for (int round = 0; round < 50; ++round) {
    const SampleLog log = random_log(random);
    const std::uint64_t begin = random() % 3000, end = begin + random() % 2000;
    const SampleLog part = excerpt_samples(log, begin, end);
    std::vector<std::vector<std::string>> expected, found, expected_waits, found_waits;
    std::set<std::string> names, kept;
    const auto expect = [&](const format::SampleRecord& sample, auto& in) {
      in.push_back(told(log, sample));
      names.insert(in.back().begin() + 3, in.back().end());
    };
    for (const auto& sample : log.samples)
      if (sample.ticks >= begin && sample.ticks < end) expect(sample, expected);
    for (std::size_t i = 0; i < log.waits.size(); ++i) {
      const auto& wait = log.waits[i];
      const bool is_last = std::none_of(log.waits.begin() + i + 1, log.waits.end(), [&](const auto& later) {
        return later.ticks < begin && later.tid == wait.tid;
      });
      if (wait.ticks < end && (wait.ticks >= begin || is_last)) expect(wait, expected_waits);
    }
    for (const auto& sample : part.samples) found.push_back(told(part, sample));
    for (const auto& wait : part.waits) found_waits.push_back(told(part, wait));
    EXPECT_EQ(found_waits, expected_waits);
    for (const auto& function : part.functions) EXPECT_TRUE(kept.insert(function.name).second);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(kept, names) << "nothing else comes along";
  }
}

TEST(Samples, ThatNobodyWouldWriteHaveStacksThatEnd) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    SampleLog log = random_log(random);
    for (auto& stack : log.stacks) {
      if (random() % 4 == 0) stack.caller = random() % 5 == 0 ? random() : random() % 60;
      if (random() % 4 == 0) stack.function = random() % 5 == 0 ? random() : random() % 30;
    }
    for (auto* const samples : {&log.samples, &log.waits})
      for (auto& sample : *samples) {
        if (random() % 4 == 0) sample.stack = random() % 5 == 0 ? random() : random() % 60;
        if (random() % 9 == 0) sample.ticks = random();
      }
    if (random() % 5 == 0) log.source.period_ns = random() % 2 == 0 ? ~std::uint64_t{0} : 1;
    const auto bytes = written(log);
    const auto trace = reader::Trace::open_memory(bytes, "hostile.karst");
    ASSERT_TRUE(trace);
    const SampleLog& read = trace->samples();
    for (const auto* const samples : {&read.samples, &read.waits}) {
      std::uint64_t last = 0;
      for (const auto& sample : *samples) {
        EXPECT_GE(sample.ticks, last);
        last = sample.ticks;
        EXPECT_LE(told(read, sample).size(), read.stacks.size() + 3);
      }
    }
    for (std::uint32_t i = 0; i < read.stacks.size(); ++i) EXPECT_LE(read.stacks[i].caller, i);
  }
}

}  // namespace
}  // namespace karst::test
