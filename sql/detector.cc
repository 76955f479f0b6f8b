// SPDX-License-Identifier: MIT
#include "sql/detector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

namespace karst::sql {
namespace {

using answers::CheckFinding;
using Values = std::vector<std::optional<std::string_view>>;

// Zones, which libraries and programs tell of, stand in a module of their own: their values are no choice of --args.
constexpr std::array kNeeds{
    Need{"states", "SELECT 1 FROM thread_states", "no thread states",
         "karst run --sched records them, as root or where kernel.perf_event_paranoid is 2 or less"},
    Need{"locks", "SELECT 1 FROM lock_waits WHERE kind IN ('mutex', 'rwlock', 'rwlock (shared)', 'spinlock')",
         "no waits for locks", "karst run --system locks records them, if there are any"},
    Need{"files", "SELECT 1 FROM file_calls", "no calls to files",
         "karst run --system files,net records them, if there are any"},
    Need{"memory", "SELECT 1 FROM memory_of_functions", "no allocations",
         "karst run --system memory records them, if there are any"},
    Need{"arguments",
         "SELECT 1 FROM calls WHERE arguments <> '' AND function NOT IN (SELECT function FROM functions WHERE module "
         "= '[notes]')",
         "no arguments", "karst run --args REGEX records those of functions whose name matches"},
    Need{"returns",
         "SELECT 1 FROM calls WHERE returned <> '' AND function NOT IN (SELECT function FROM functions WHERE module = "
         "'[notes]')",
         "no returned values", "karst run --returns REGEX records those of functions whose name matches"}};

constexpr std::array<const char*, 11> kColumns{"title", "sentence", "begin_ns", "duration_ns", "tid", "thread",
                                               "call",  "amount",   "unit",     "total_ns",    "sure"};
enum At { kTitle, kSentence, kBegin, kDuration, kTid, kThread, kCall, kAmount, kUnit, kTotal, kSure };

const Need* find_need(std::string_view word) {
  const auto* const found = std::find_if(kNeeds.begin(), kNeeds.end(), [&](const Need& n) { return n.word == word; });
  return found == kNeeds.end() ? nullptr : found;
}

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlank = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

/// Of the header's `-- key: value`; empty: it has no such line.
std::string_view header_value(std::string_view sql, std::string_view key) {
  while (sql.starts_with("--")) {
    const std::size_t end = std::min(sql.find('\n'), sql.size());
    const std::string_view line = trimmed(sql.substr(2, end - 2));
    if (line.starts_with(key) && line.substr(key.size()).starts_with(":")) return trimmed(line.substr(key.size() + 1));
    sql.remove_prefix(std::min(end + 1, sql.size()));
  }
  return {};
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 40 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

/// Whole, or the nearest whole number.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t whole = 0;
  const char* const last = text.data() + text.size();
  if (const auto [end, error] = std::from_chars(text.data(), last, whole); error == std::errc() && end == last)
    return whole;
  double real = 0;
  const auto [end, error] = std::from_chars(text.data(), last, real);
  if (error != std::errc() || end != last || !(real >= 0 && real < 0x1p63)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(real));
}

std::optional<double> share(std::string_view text) {
  double real = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, real);
  if (error != std::errc() || end != last || !(real >= 0 && real <= 1)) return std::nullopt;
  return real;
}

/// Makes findings of an answer's rows.
class FindingSink final : public AnswerSink {
 public:
  FindingSink(const Detector& detector, const std::string& trace) : detector_(detector), trace_(trace) {}

  void columns(const std::vector<AnswerColumn>& columns) override {
    has_columns_ = true;
    for (std::size_t at = 0; at < columns.size(); ++at) {
      const auto* const known = std::find(kColumns.begin(), kColumns.end(), columns[at].name);
      if (known == kColumns.end())
        complain(fmt::format("a finding has no column '{}'", columns[at].name));
      else
        places_[static_cast<std::size_t>(known - kColumns.begin())] = at;
    }
    for (std::size_t at = 0; at < kColumns.size(); ++at)
      if (!places_[at]) complain(fmt::format("its answer has no column '{}'", kColumns[at]));
  }
  bool row(const Values& values) override {
    if (!error_.empty()) return false;
    if (found_.size() == kMostFindings) {
      complain(fmt::format("it found more than {} things", kMostFindings));
      return false;
    }
    add(values);
    return error_.empty();
  }
  std::string error() const { return has_columns_ ? error_ : "its last statement is no SELECT"; }
  std::vector<CheckFinding> take() { return std::move(found_); }

 private:
  using Text = std::optional<std::string_view>;

  void complain(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }
  Text value(const Values& values, At at) const { return values[*places_[at]]; }
  std::string text(const Values& values, At at) const { return std::string(value(values, at).value_or("")); }
  std::string needed(const Values& values, At at) {
    std::string made = text(values, at);
    if (made.empty()) complain(fmt::format("a finding has no {}", kColumns[at]));
    return made;
  }
  std::uint64_t number(const Values& values, At at) {
    const auto made = whole_number(value(values, at).value_or(""));
    if (!made)
      complain(fmt::format("'{}' of a finding is '{}', which is no number from 0 on", kColumns[at], text(values, at)));
    return made.value_or(0);
  }
  void add(const Values& values) {
    CheckFinding finding;
    finding.trace = trace_;
    finding.detector = detector_.name;
    finding.title = needed(values, kTitle);
    finding.sentence = needed(values, kSentence);
    finding.begin_ns = number(values, kBegin);
    finding.duration_ns = number(values, kDuration);
    if (value(values, kTid)) finding.tid = number(values, kTid);
    finding.thread = text(values, kThread);
    finding.call = text(values, kCall);
    finding.amount = number(values, kAmount);
    finding.unit = text(values, kUnit);
    finding.total_ns = number(values, kTotal);
    const auto sure = share(value(values, kSure).value_or(""));
    if (!sure)
      complain(fmt::format("'sure' of a finding is '{}', which is no number from 0 to 1", text(values, kSure)));
    finding.sure = sure.value_or(0);
    found_.push_back(std::move(finding));
  }

  const Detector& detector_;
  const std::string& trace_;
  std::array<std::optional<std::size_t>, kColumns.size()> places_;
  bool has_columns_ = false;
  std::string error_;
  std::vector<CheckFinding> found_;
};

/// Whether there is a row.
class RowSink final : public AnswerSink {
 public:
  void columns(const std::vector<AnswerColumn>& /*columns*/) override {}
  bool row(const Values& /*values*/) override {
    has_row_ = true;
    return false;
  }
  bool has_row() const { return has_row_; }

 private:
  bool has_row_ = false;
};

Checked ended(Checked made, const char* outcome, std::string why = {}) {
  made.outcome.outcome = outcome;
  made.outcome.why = std::move(why);
  made.outcome.findings = made.findings.size();
  return made;
}

}  // namespace

std::span<const Need> all_needs() { return kNeeds; }
std::span<const char* const> finding_columns() { return kColumns; }

Result<Detector> parse_detector(std::string sql, std::string file) {
  const auto wrong = [&file](const std::string& what) { return Error{file + ": " + what}; };
  if (sql.find('\0') != std::string::npos) return wrong("it has a byte 0 in it");
  Detector made;
  made.name = header_value(sql, "name");
  if (!is_name(made.name))
    return wrong("its header needs '-- name: ', and behind it 1 to 40 letters a-z, digits and '-'");
  made.sentence = header_value(sql, "sentence");
  if (made.sentence.empty()) return wrong("its header needs '-- sentence: ', and behind it what it looks for");
  std::string_view needs = header_value(sql, "needs");
  while (!needs.empty()) {
    const std::size_t comma = std::min(needs.find(','), needs.size());
    const std::string word(trimmed(needs.substr(0, comma)));
    if (find_need(word) == nullptr) {
      std::vector<std::string> known;
      known.reserve(kNeeds.size());
      for (const Need& need : kNeeds) known.emplace_back(need.word);
      return wrong(fmt::format("it needs '{}'; what can be needed are {}", word, fmt::join(known, ", ")));
    }
    made.needs.push_back(word);
    needs.remove_prefix(std::min(comma + 1, needs.size()));
  }
  made.file = std::move(file);
  made.sql = std::move(sql);
  return made;
}

Checked check(const Detector& detector, Database& database, const std::string& trace) {
  Checked made;
  made.outcome.trace = trace;
  made.outcome.detector = detector.name;
  for (const std::string& word : detector.needs) {
    const Need& need = *find_need(word);
    RowSink sink;
    if (const Status asked = database.ask(fmt::format("{} LIMIT 1", need.sql), sink); !asked)
      return ended(std::move(made), "failed", asked.error().message);
    if (!sink.has_row())
      return ended(std::move(made), "not looked for", fmt::format("the trace has {}; {}", need.lacks, need.remedy));
  }
  FindingSink sink(detector, trace);
  if (const Status asked = database.ask(detector.sql, sink); !asked)
    return ended(std::move(made), "failed", asked.error().message);
  if (std::string why = sink.error(); !why.empty()) return ended(std::move(made), "failed", std::move(why));
  made.findings = sink.take();
  const char* const outcome = made.findings.empty() ? "nothing" : "found";
  return ended(std::move(made), outcome);
}

}  // namespace karst::sql
