// SPDX-License-Identifier: MIT
#include "words/explanation.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/plain_name.h"
#include "base/text.h"
#include "words/path.h"

namespace karst::words {

using analysis::Cause;
using analysis::CauseKind;

const char* kind_name(CauseKind kind) {
  switch (kind) {
    case CauseKind::kOwnTime:
      return "own time";
    case CauseKind::kComputing:
      return "computing";
    case CauseKind::kWaiting:
      return "blocked";
    case CauseKind::kRunnable:
      return "without a CPU";
    case CauseKind::kUnknown:
      return "not known";
    case CauseKind::kMoreCalls:
      return "more calls";
    case CauseKind::kFewerCalls:
      return "fewer calls";
    case CauseKind::kNew:
      return "new";
    case CauseKind::kMissing:
      return "missing";
  }
  return "";
}

ExplainedCall::ExplainedCall(About about, const analysis::Explainer& explainer, analysis::Explanation of)
    : about_(std::move(about)),
      explainer_(explainer),
      of_(std::move(of)),
      teller_(about_.trace, about_.calls_of),
      locks_(about_.trace),
      chains_(of_.causes.size()) {}

std::int64_t ExplainedCall::ns(double ticks) const {
  const auto whole = static_cast<std::uint64_t>(std::llround(std::abs(ticks)));
  const auto size = static_cast<std::int64_t>(about_.trace.clock().to_ns(whole));
  return ticks < 0 ? -size : size;
}

std::string ExplainedCall::time(double ticks) const {
  const std::int64_t of = ns(ticks);
  return (of < 0 ? "-" : "") + duration_text(static_cast<std::uint64_t>(std::abs(of)));
}

std::string ExplainedCall::id() const {
  const std::uint64_t begin = about_.call.begin > about_.start ? about_.call.begin - about_.start : 0;
  return fmt::format("{}@{}ns", about_.call.thread->tid, about_.trace.clock().to_ns(begin));
}

std::string ExplainedCall::function_name(std::uint32_t number) const {
  return printable(plain_name(functions().functions()[number].name));
}

std::optional<ToldWait> ExplainedCall::wait(const Cause& cause) const {
  return cause.wait ? std::optional(teller_.tell(*cause.wait)) : std::nullopt;
}

const std::vector<ToldLink>& ExplainedCall::chain(std::size_t cause) const {
  auto& known = chains_[cause];
  if (known) return *known;
  known.emplace();
  if (const std::optional<analysis::Wait>& wait = of_.causes[cause].wait)
    for (analysis::ChainLink& link :
         analysis::follow_waits(about_.waits, locks_, nullptr, *about_.call.thread, *wait, about_.calls_of))
      known->push_back(teller_.tell(std::move(link)));
  return *known;
}

std::string ExplainedCall::words(const analysis::ValueHint& hint) const {
  const std::string text = printable(hint.words);
  return hint.below ? function_name(hint.function) + ": " + text : text;
}

std::string ExplainedCall::place(const Cause& cause) const {
  std::vector<std::string> names;
  for (const std::uint32_t number : cause.path) names.push_back(function_name(number));
  const std::string text = path_text(std::move(names));
  return text.empty() ? std::string("its own code") : text;
}

// As many as may have taken the time, and not what typical calls have as well.
std::string ExplainedCall::words_of_faults(const Cause& cause) const {
  constexpr double kLeast = 64, kTimes = 4;
  constexpr double kDearest = 100'000;  // ns that one takes at most
  const double more = cause.faults - cause.usual_faults;
  if (more < kLeast || cause.faults < kTimes * cause.usual_faults ||
      static_cast<double>(ns(cause.ticks)) > more * kDearest)
    return {};
  const auto about = [](double count) { return count_text(static_cast<std::uint64_t>(std::llround(count))); };
  return fmt::format(", with about {} page faults (usual are {})", about(cause.faults), about(cause.usual_faults));
}

std::string ExplainedCall::what(const Cause& cause) const {
  const auto more = std::abs(static_cast<double>(cause.calls) - cause.usual_calls);
  const std::optional<ToldWait> waited = wait(cause);
  std::string text;
  switch (cause.kind) {
    case CauseKind::kOwnTime:
      return "own time";
    case CauseKind::kComputing:
      return "computing" + words_of_faults(cause);
    case CauseKind::kUnknown:
      return "in states that were not recorded";
    case CauseKind::kMoreCalls:
      return fmt::format("{:.4g} more calls ({} instead of {:.4g})", more, count_text(cause.calls), cause.usual_calls);
    case CauseKind::kFewerCalls:
      return fmt::format("{:.4g} fewer calls ({} instead of {:.4g})", more, count_text(cause.calls), cause.usual_calls);
    case CauseKind::kMissing:
      return "not called, as typical calls do";
    case CauseKind::kNew:
      text = fmt::format("{}, in no typical call", plural(cause.calls, "call")) + words_of_faults(cause);
      return waited ? text + "; " + waited->words : text;
    case CauseKind::kWaiting:
      return waited ? waited->words : "blocked";
    case CauseKind::kRunnable:
      return waited ? waited->words : "runnable, without a CPU";
  }
  return text;
}

std::string ExplainedCall::headline() const {
  if (of_.most == 0) return difference();
  return fmt::format("{}; it was left by a tail call into code that is not traced, and may have lasted up to {}",
                     difference(), time(static_cast<double>(of_.most)));
}

std::string ExplainedCall::difference() const {
  const reader::Process& process = about_.trace.processes()[about_.call.thread->process];
  const std::string name = printable(plain_name(about_.trace.function(process, about_.function).name));
  const std::string took = time(static_cast<double>(of_.duration));
  const std::string usual = time(static_cast<double>(of_.usual));
  if (of_.siblings == 0)
    return fmt::format("{} took {}; it is the only complete call, so nothing says what is usual", name, took);
  if (!of_.stands_out)
    return fmt::format("nothing stands out: {} took {}; usual are {} (median of {}), and calls differ as much", name,
                       took, usual, plural(of_.siblings, "other call"));
  std::string head = fmt::format("{} took {} instead of {}", name, took, usual);
  if (of_.causes.empty()) return head;
  const Cause& first = of_.causes[0];
  head += fmt::format(": {:.1f}% of the excess in {}, ", 100 * share(first.ticks), place(first));
  // Who was waited for in the end says more than who woke the thread.
  const std::vector<ToldLink>& links = chain(0);
  const bool known = !links.empty() && !links.back().of.functions.empty();
  return head + (known ? "waiting for " + teller_.who(links.back().of, true) : what(first));
}

std::string ExplainedCall::comparison() const {
  return fmt::format("usual: the median of {}; compared with {} next to it{}", plural(of_.siblings, "other call"),
                     count_text(of_.typical), of_.siblings < 10 ? ", which are few to tell what is usual" : "");
}

}  // namespace karst::words
