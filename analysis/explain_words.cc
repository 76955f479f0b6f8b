#include "analysis/explain_words.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "analysis/path_text.h"
#include "base/plain_name.h"
#include "base/text.h"

namespace karst::analysis {
namespace {

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

}  // namespace

ExplainedCall::ExplainedCall(About about, const Explainer& explainer, Explanation of)
    : about_(std::move(about)),
      explainer_(explainer),
      of_(std::move(of)),
      kept_off_(about_.trace, about_.calls_of),
      locks_(about_.trace),
      chains_(of_.causes.size()) {}

const reader::Process& ExplainedCall::process(const reader::Thread& thread) const {
  return about_.trace.processes()[thread.process];
}

std::int64_t ExplainedCall::signed_ns(double ticks) const {
  const auto size = static_cast<std::int64_t>(ns(static_cast<std::uint64_t>(std::llround(std::abs(ticks)))));
  return ticks < 0 ? -size : size;
}

std::string ExplainedCall::time(double ticks) const {
  const std::int64_t of = signed_ns(ticks);
  return (of < 0 ? "-" : "") + duration_text(static_cast<std::uint64_t>(std::abs(of)));
}

std::uint64_t ExplainedCall::since_start() const {
  return about_.call.begin > about_.start ? ns(about_.call.begin - about_.start) : 0;
}

std::string ExplainedCall::id() const { return fmt::format("{}@{}ns", about_.call.thread->tid, since_start()); }

std::string ExplainedCall::function_name(const reader::Thread& thread, std::uint32_t id) const {
  return printable(plain_name(about_.trace.function(process(thread), id).name));
}

std::string ExplainedCall::words(const Wait& wait, const KeptOff& kept) const {
  const auto name = [this](const reader::Thread& of, std::uint32_t id) {
    return plain_name(about_.trace.function(process(of), id).name);
  };
  const auto time_of = [this](std::uint64_t ticks) { return duration_text(ns(ticks)); };
  const reader::States& states = about_.trace.states();
  return printable(describe(wait, states, name, time_of, kept_off_words(kept, states, name, time_of)));
}

const std::vector<ChainLink>& ExplainedCall::chain(std::size_t cause) {
  auto& known = chains_[cause];
  if (!known) {
    const std::optional<Wait>& wait = of_.causes[cause].wait;
    known = wait ? follow_waits(about_.waits, locks_, *about_.call.thread, *wait, about_.calls_of)
                 : std::vector<ChainLink>();
  }
  return *known;
}

// "812 server in Cache::lookup > Disk::flush"; `innermost`: the last function alone.
std::string ExplainedCall::who(const ChainLink& link, bool innermost) const {
  std::vector<std::string> names;
  for (const std::uint32_t of : link.functions) names.push_back(function_name(*link.thread, of));
  if (innermost && !names.empty()) names.erase(names.begin(), names.end() - 1);
  const std::string path = path_text(std::move(names));
  const std::string thread = fmt::format("{} {}", link.thread->tid, printable(link.thread->name));
  return path.empty() ? thread : thread + " in " + path;
}

std::string ExplainedCall::words(const ChainLink& link) const {
  const std::string text = "meanwhile " + who(link, false);
  return link.waited ? fmt::format("{}: {} {}", text, duration_text(ns(link.wait.length())), words(link.wait)) : text;
}

std::string ExplainedCall::words(const ValueHint& hint) const {
  std::string text = printable(hint.words);
  if (!hint.below) return text;
  return printable(plain_name(explainer_.functions().functions()[hint.function].name)) + ": " + text;
}

void ExplainedCall::write_values(Json& json, const std::vector<ValueHint>& values) const {
  json.key("values").open('[');
  for (const ValueHint& hint : values) {
    json.open('{').field("function", explainer_.functions().functions()[hint.function].name);
    json.field("name", hint.name).field("here", hint.here).field("calls", hint.calls).field("typical", hint.typical);
    json.field("commonest", hint.commonest).field("times", hint.times);
    if (hint.numbers) json.field("least", hint.least).field("median", hint.mid).field("most", hint.most);
    json.field("words", words(hint)).close('}');
  }
  json.close(']');
}

std::string ExplainedCall::place(const Cause& cause) const {
  std::vector<std::string> names;
  for (const std::uint32_t number : cause.path)
    names.push_back(printable(plain_name(explainer_.functions().functions()[number].name)));
  const std::string text = path_text(std::move(names));
  return text.empty() ? std::string("its own code") : text;
}

// As many as may have taken the time, and not what typical calls have as well.
std::string ExplainedCall::words_of_faults(const Cause& cause) const {
  constexpr double kLeast = 64, kTimes = 4;
  constexpr double kDearest = 100'000;  // ns that one takes at most
  const double more = cause.faults - cause.usual_faults;
  if (more < kLeast || cause.faults < kTimes * cause.usual_faults ||
      static_cast<double>(signed_ns(cause.ticks)) > more * kDearest)
    return {};
  const auto about = [](double count) { return count_text(static_cast<std::uint64_t>(std::llround(count))); };
  return fmt::format(", with about {} page faults (usual are {})", about(cause.faults), about(cause.usual_faults));
}

std::string ExplainedCall::what(const Cause& cause) const {
  const auto more = std::abs(static_cast<double>(cause.calls) - cause.usual_calls);
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
      return cause.wait ? text + "; " + words(*cause.wait) : text;
    case CauseKind::kWaiting:
      return cause.wait ? words(*cause.wait) : "blocked";
    case CauseKind::kRunnable:
      return cause.wait ? words(*cause.wait) : "runnable, without a CPU";
  }
  return text;
}

std::string ExplainedCall::headline() {
  const std::string name = function_name(*about_.call.thread, about_.function);
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
  const std::vector<ChainLink>& links = chain(0);
  const bool known = !links.empty() && !links.back().functions.empty();
  return head + (known ? "waiting for " + who(links.back(), true) : what(first));
}

std::string ExplainedCall::comparison() const {
  return fmt::format("usual: the median of {}; compared with {} next to it{}", plural(of_.siblings, "other call"),
                     count_text(of_.typical), of_.siblings < 10 ? ", which are few to tell what is usual" : "");
}

void ExplainedCall::write(Json& json, const std::function<void(Json&, const Cause&)>& more) {
  const reader::Thread& thread = *about_.call.thread;
  json.field("trace", about_.trace.name()).field("call", id());
  json.field("function", about_.trace.function(process(thread), about_.function).name);
  json.field("pid", process(thread).pid).field("tid", thread.tid).field("thread", thread.name);
  json.field("begin_ns", since_start()).field("duration_ns", ns(of_.duration)).field("siblings", of_.siblings);
  json.field("typical", of_.typical).field("usual_ns", ns(of_.usual)).field("first", of_.first);
  json.field("stands_out", of_.stands_out).field("excess_ns", signed_ns(of_.excess()));
  json.field("headline", headline());
  if (of_.siblings != 0) json.field("comparison", comparison());
  if (!of_.values.empty()) write_values(json, of_.values);
  json.key("causes").open('[');
  for (std::size_t i = 0; i < of_.causes.size(); ++i) {
    const Cause& cause = of_.causes[i];
    json.line().open('{').field("kind", kind_name(cause.kind)).list("path", cause.path, [&](std::uint32_t number) {
      return explainer_.functions().functions()[number].name;
    });
    json.field("place", place(cause)).field("what", what(cause));
    json.field("excess_ns", signed_ns(cause.ticks)).field("share", share(cause.ticks));
    json.field("calls", cause.calls).field("usual_calls", cause.usual_calls);
    if (cause.faults != 0 || cause.usual_faults != 0)
      json.field("page_faults", cause.faults).field("usual_page_faults", cause.usual_faults);
    if (cause.wait) {
      const KeptOff& kept = kept_off_.of(*cause.wait);
      json.field("wait", words(*cause.wait, kept)).field("wait_ns", ns(cause.wait->length()));
      write_kept_off(
          json, kept, about_.trace.states(),
          [this](const reader::Thread& of, std::uint32_t id) { return about_.trace.function(process(of), id).name; },
          [this](std::uint64_t ticks) { return ns(ticks); });
      json.key("chain").open('[');
      for (const ChainLink& link : chain(i)) {
        json.open('{').field("tid", link.thread->tid).field("thread", link.thread->name);
        json.list("path", link.functions,
                  [&](std::uint32_t of) { return about_.trace.function(process(*link.thread), of).name; });
        json.field("words", words(link)).close('}');
      }
      json.close(']');
    }
    if (!cause.values.empty()) write_values(json, cause.values);
    if (more) more(json, cause);
    json.close('}');
  }
  json.close(']').field("rest_ns", signed_ns(of_.rest)).field("rest_share", share(of_.rest));
}

}  // namespace karst::analysis
