// SPDX-License-Identifier: MIT
// The text of `perf script`: samples of CPU time with their stacks, which become samples of ours.
//
// Karst's samples all stand for one period of CPU time. Events that count something else than CPU time are left out, as
// are those of a second event. The period is, in this order: what the header says (perf script --header), what the
// samples of a clock say, or the usual time between two samples of a thread, which a remark tells.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "import/import.h"
#include "import/perf_lines.h"
#include "import/text.h"

namespace karst::importing {
namespace {

constexpr std::uint64_t kSecondInNs = 1'000'000'000;
constexpr std::uint64_t kLongestPeriod = 3600 * kSecondInNs;  // as traces of ours can have
constexpr std::size_t kMostOtherEvents = 32;                  // that are counted by name
constexpr std::size_t kMostEventName = 64;
constexpr std::size_t kMostFrames = 4096;  // of a stack

/// Takes the next line off, without its end.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string clean(std::string_view text, std::size_t most) { return valid_utf8(cut(text, most)); }

/// `# event : name = cycles, ..., { sample_period, sample_freq } = 4000, ..., freq = 1`: how many a second.
std::optional<std::uint64_t> frequency_in(std::string_view line, std::string_view event) {
  constexpr std::string_view kNumber = "sample_freq } = ";
  constexpr std::string_view kName = "# event : name = ";
  if (!line.starts_with(kName) || line.find(", freq = 1") == std::string_view::npos) return std::nullopt;
  const std::string_view name = line.substr(kName.size(), line.find(',') - kName.size());
  const auto at = line.find(kNumber);
  if (perf_event_name(name) != event || at == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  std::from_chars(line.data() + at + kNumber.size(), line.data() + line.size(), number);
  return number == 0 || number > kSecondInNs ? std::nullopt : std::optional(number);
}

class PerfReader {
 public:
  Result<ForeignTrace> read(std::string_view text) {
    while (!text.empty()) {
      const std::string_view line = take_line(text);
      if (line.starts_with('#')) {
        comments_.push_back(line);
      } else if (const auto head = line.starts_with('\t') ? std::nullopt : perf_head(line)) {
        end_sample();
        begin_sample(*head);
      } else if (line.empty()) {
        end_sample();
      } else {
        add_frame(line);
      }
    }
    end_sample();
    if (samples_.empty()) return std::move(trace_);
    return finish();
  }

 private:
  void leave_out(const std::string& what) { ++trace_.left_out[what]; }

  void begin_sample(const PerfHead& head) {
    const std::string_view event = perf_event_name(head.event);
    is_left_out_ = !is_cpu_time(event) || (!event_.empty() && event != event_);
    in_sample_ = true;
    if (is_left_out_) return leave_out_event(event);
    event_ = event;
    const std::uint32_t pid = head.pid.value_or(0);
    name_thread(pid, head);
    samples_.push_back({static_cast<std::uint64_t>(head.ns), head.tid, pid, 0, head.cpu, 0});
    if (head.period) {
      periods_ += static_cast<double>(*head.period);
      ++with_period_;
    }
    frames_.clear();
    if (!head.rest.empty()) add_frame(head.rest);
  }

  void leave_out_event(std::string_view event) {
    std::string what = "samples of " + clean(event, kMostEventName) +
                       (is_cpu_time(event) ? ", as there are those of another event" : ", which is no CPU time");
    if (!trace_.left_out.contains(what) && trace_.left_out.size() >= kMostOtherEvents) what = "samples of other events";
    leave_out(what);
  }

  void add_frame(std::string_view line) {
    if (in_sample_ && is_left_out_) return;
    const auto frame = in_sample_ ? perf_frame(line) : std::nullopt;
    if (!frame) return leave_out("lines that are no part of a sample");
    if (frames_.size() < kMostFrames)
      frames_.push_back(function_of(*frame));
    else
      samples_.back().flags = format::kSampleCut;
  }

  void end_sample() {
    if (in_sample_ && !is_left_out_) samples_.back().stack = stack_of();
    in_sample_ = false;
  }

  std::uint32_t function_of(const PerfFrame& frame) {
    key_.assign(frame.name.substr(0, kMostName)).append(1, '\0').append(frame.module.substr(0, kMostName));
    if (const auto found = functions_.find(key_); found != functions_.end()) return found->second;
    auto& functions = trace_.samples.functions;
    reader::SampledFunction& made = functions.emplace_back();
    made.name = clean(frame.name, kMostName);
    made.module = clean(frame.module, kMostName);
    return functions_[key_] = static_cast<std::uint32_t>(functions.size() - 1);
  }

  /// 1 + its place in the log's stacks; 0: it has no frames.
  std::uint32_t stack_of() {
    std::uint32_t at = 0;
    for (auto function = frames_.rbegin(); function != frames_.rend(); ++function) {
      constexpr unsigned kHalf = 32;
      const std::uint64_t key = std::uint64_t{at} << kHalf | *function;
      const auto [found, is_new] =
          stacks_.try_emplace(key, static_cast<std::uint32_t>(trace_.samples.stacks.size() + 1));
      if (is_new) trace_.samples.stacks.push_back({at, *function});
      at = found->second;
    }
    return at;
  }

  /// A thread has the name that it had last; a process that of its first thread.
  void name_thread(std::uint32_t pid, const PerfHead& head) {
    const auto [of_pid, is_new_process] = processes_.try_emplace(pid, trace_.processes.size());
    if (is_new_process) {
      Process& made = trace_.processes.emplace_back();
      made.pid = pid;
      made.name = head.pid ? clean(head.command, kMostName) : "(not known)";
    }
    Process& process = trace_.processes[of_pid->second];
    const auto [found, is_new] = threads_.try_emplace({pid, head.tid}, process.threads.size());
    if (is_new) process.threads.emplace_back().tid = head.tid;
    std::string& name = process.threads[found->second].name;
    if (name != head.command) name = clean(head.command, kMostName);
    if (head.pid == head.tid && process.name != name) process.name = name;
  }

  /// None: too few samples to tell.
  std::optional<std::uint64_t> usual_distance() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> last;
    std::vector<std::uint64_t> distances;
    for (const format::SampleRecord& sample : samples_) {
      const auto [found, is_first] = last.try_emplace({sample.pid, sample.tid}, sample.ticks);
      if (!is_first && sample.ticks > found->second) distances.push_back(sample.ticks - found->second);
      found->second = sample.ticks;
    }
    if (distances.empty()) return std::nullopt;
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    return *middle;
  }

  std::optional<std::uint64_t> period() {
    for (const std::string_view comment : comments_)
      if (const auto frequency = frequency_in(comment, event_)) return kSecondInNs / *frequency;
    const double mean = with_period_ == 0 ? 0 : periods_ / static_cast<double>(with_period_);
    if (event_.ends_with("-clock") && mean >= 1 && mean <= static_cast<double>(kLongestPeriod))
      return static_cast<std::uint64_t>(mean);
    const auto distance = usual_distance();
    if (distance)
      trace_.remarks.push_back("what a sample stands for it does not say: " + std::to_string(*distance) +
                               " ns are the usual time between two of a thread; 'perf script --header' says it");
    return distance;
  }

  Result<ForeignTrace> finish() {
    const auto earlier = [](const auto& a, const auto& b) { return a.ticks < b.ticks; };
    std::stable_sort(samples_.begin(), samples_.end(), earlier);
    const auto of_sample = period();
    if (!of_sample) return Error{"nothing says how much time a sample stands for: 'perf script --header' writes it"};
    reader::SampleSource& source = trace_.samples.source;
    source.period_ns = std::clamp<std::uint64_t>(*of_sample, 1, kLongestPeriod);
    source.begin_ticks = samples_.front().ticks;
    source.end_ticks = samples_.back().ticks;
    for (const format::SampleRecord& sample : samples_) trace_.samples.samples.push_back(sample);
    return std::move(trace_);
  }

  ForeignTrace trace_;
  std::vector<std::string_view> comments_;
  std::vector<format::SampleRecord> samples_;
  std::string_view event_;  ///< whose samples are taken; empty: none has come yet
  bool in_sample_ = false;
  bool is_left_out_ = false;
  double periods_ = 0;
  std::uint64_t with_period_ = 0;
  std::vector<std::uint32_t> frames_;  ///< of the sample, innermost first
  std::string key_;
  Numbers functions_;
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_;  ///< by caller and function
  std::map<std::uint32_t, std::size_t> processes_;           ///< by pid
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> threads_;
};

}  // namespace

bool may_be_perf(std::string_view bytes) {
  constexpr std::size_t kLook = std::size_t{64} << 10;
  bytes = bytes.substr(0, kLook);
  while (!bytes.empty()) {
    const std::string_view line = take_line(bytes);
    if (!line.empty() && !line.starts_with('#')) return perf_head(line).has_value();
  }
  return false;
}

Result<ForeignTrace> import_perf(std::string_view bytes) { return PerfReader().read(bytes); }

}  // namespace karst::importing
