// SPDX-License-Identifier: MIT
#include "cli/commands/run_summary.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/plain_name.h"
#include "base/text.h"
#include "choice/function_lists.h"
#include "cli/command.h"
#include "cli/text/text.h"
#include "format/filter_list.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

/// "; 3 moments kept, the longest 20.31 ms in serve(int)", or empty.
std::string moments_words(const std::string& file) {
  const auto trace = reader::Trace::open(file, true);
  if (!trace) return {};
  std::size_t count = 0;
  std::uint64_t longest = 0;
  std::string where;
  for (const reader::Process& process : trace->processes()) {
    for (const reader::Moment& moment : process.moments) {
      ++count;
      const std::uint64_t length = moment.end_ticks > moment.begin_ticks ? moment.end_ticks - moment.begin_ticks : 0;
      if (length < longest) continue;
      longest = length;
      where = moment.function != 0 ? trace->function(process, moment.function).name : std::string();
    }
  }
  if (count == 0) return {};
  return fmt::format("; {} kept, the longest {}{}", plural(count, "moment"),
                     duration_text(trace->clock().to_ns(longest)), where.empty() ? "" : " in " + plain_name(where));
}

std::string killed_words(std::int32_t wait_status) {
  if (!WIFSIGNALED(wait_status)) return {};
  const char* const name = sigabbrev_np(WTERMSIG(wait_status));
  return "; the program was killed by " +
         (name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(WTERMSIG(wait_status)));
}

}  // namespace

double overhead_of(const collect::RecordingSummary& s, double cpu_ns) {
  if (s.calls != 0 && s.tracing_ns == 0) return -1;
  return cpu_ns > 0 ? std::min(1.0, static_cast<double>(s.tracing_ns) / cpu_ns) : -1;
}

std::string time_taken(collect::RunTimes::Clock::time_point began, const collect::RunTimes& times) {
  const auto seconds = [](collect::RunTimes::Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  };
  const double before = seconds(times.started - began + times.program);
  const double others = seconds(times.others);
  const double after = seconds(collect::RunTimes::Clock::now() - times.ended);
  const std::string meanwhile =
      times.other_programs == 0
          ? std::string()
          : fmt::format(", {:.2f} s as {} more {} began", others, count_text(times.other_programs),
                        times.other_programs == 1 ? "program" : "programs");
  return fmt::format("karst took {:.2f} s: {:.2f} s before the program began{}, {:.2f} s after it ended",
                     before + others + after, before, meanwhile, after);
}

std::string summary_line(const std::string& file, const collect::RecordingSummary& s, std::int32_t wait_status,
                         double overhead, bool noted_values, std::size_t samples, const char* why_alone,
                         std::uint64_t notes, const std::string& took) {
  if (why_alone != nullptr && s.calls == 0)
    return fmt::format("{}: {}, {} of CPU time and no calls, as {}; {}{}; next: karst samples {}", file,
                       plural(s.processes, "process", "es"), plural(samples, "sample"), why_alone, took,
                       killed_words(wait_status), file);
  std::string line = fmt::format("{}: {}, {}, {}{} kept over {}", file, plural(s.processes, "process", "es"),
                                 plural(s.threads, "thread"), s.calls_are_about ? "about " : "",
                                 plural(s.calls, "call"), duration_text(s.span_ns));
  // A call is two events; those cut at the edge of what is kept make this inexact by a few.
  line += s.overwritten == 0 ? std::string(", none overwritten")
                             : fmt::format(", about {} overwritten (memory was full; see --memory)",
                                           plural(s.overwritten / 2, "call"));
  if (s.lost != 0) line += fmt::format(", {} lost", plural(s.lost, "event"));
  if (samples != 0) line += ", " + plural(samples, "sample");
  if (notes != 0) line += ", " + plural(notes, "note");
  if (s.has_moments) line += moments_words(file);
  if (overhead >= 0 && s.calls != 0)
    line += fmt::format("; tracing cost about {:.1f}% of its CPU time{}", 100 * overhead,
                        noted_values ? ", and what noting values took" : "");
  line += "; " + took + killed_words(wait_status);
  return line + fmt::format("; next: karst {} {}", s.calls != 0 ? "slow" : samples != 0 ? "samples" : "info", file);
}

std::string summary_of_states(const std::string& file, const reader::StateLog& states, std::int32_t wait_status,
                              const std::string& took) {
  const auto threads = std::count_if(states.tasks.begin(), states.tasks.end(),
                                     [](const reader::Task& task) { return task.of_run && !task.tracer; });
  return fmt::format(
      "{}: when {} ran and waited, and no calls, as none of its functions can be traced; {}{}; next: karst info {}",
      file, plural(static_cast<std::uint64_t>(threads), "thread"), took, killed_words(wait_status), file);
}

void say_how_many_are_chosen(const choice::FunctionChoice& choice, const collect::LaunchResult& run) {
  const bool by_name = !choice.filter().keeps_all() || !choice.only().empty() || !choice.no_trace().empty();
  if (run.plain.empty() || !by_name || run.functions_off == 0 || run.functions_off >= run.functions) return;
  const std::uint64_t left = run.functions - run.functions_off;
  say(fmt::format("{} of {} {} traced, as --function, --only and the like say", count_text(left),
                  plural(run.functions, "function"), left == 1 ? "is" : "are"));
}

void say_unmatched_globs(const std::vector<std::string>& lists, const std::string& file) {
  constexpr std::size_t kMostSaid = 5;
  std::vector<std::string> globs;
  for (const std::string& list : lists)
    if (format::read_glob_list(list, globs)) return;  // was said when it was read first
  if (globs.empty()) return;
  const auto trace = reader::Trace::open(file, true);
  if (!trace) return;
  std::size_t unmatched = 0;
  for (const std::string& glob : globs) {
    const auto set = choice::GlobSet::compile({glob});
    const auto matches = [&](const reader::Function& f) { return f.id != 0 && set && set->matches(f); };
    if (std::any_of(trace->processes().begin(), trace->processes().end(), [&](const reader::Process& process) {
          return std::any_of(process.functions.begin(), process.functions.end(), matches);
        }))
      continue;
    if (++unmatched <= kMostSaid) say("no function matches the glob '" + glob + "' of --no-trace or --only");
  }
  if (unmatched > kMostSaid) say("nor do any match " + plural(unmatched - kMostSaid, "further glob"));
}

}  // namespace karst::cli
