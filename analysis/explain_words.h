// An explanation (analysis/explain.h) in words and as JSON. `karst explain` prints them and the page shows them, so
// both say the same. Texts are fit to be shown: names without parameters, nothing in them that a terminal would obey.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain.h"
#include "analysis/kept_off.h"
#include "analysis/locks.h"
#include "analysis/outliers.h"
#include "analysis/waits.h"
#include "base/json.h"

namespace karst::analysis {

/// Keeps references to what it is made of, except the explanation. Use from one thread.
class ExplainedCall {
 public:
  struct About {
    const reader::Trace& trace;
    CallRef call;
    std::uint32_t function = 0;    ///< id in its process
    std::uint64_t start = 0;       ///< ticks that times count from
    const Waits* waits = nullptr;  ///< null: the trace has no thread states
    CallsOf calls_of;              ///< of those who were waited for, or had the CPU
  };
  /// `explainer` made `of`.
  ExplainedCall(About about, const Explainer& explainer, Explanation of);

  const Explanation& explanation() const { return of_; }
  /// The answer in one sentence.
  std::string headline();
  /// What is usual, and of how many calls; for calls that have siblings.
  std::string comparison() const;
  /// Where a cause is.
  std::string place(const Cause& cause) const;
  /// What was different there.
  std::string what(const Cause& cause) const;
  std::string words_of_faults(const Cause& cause) const;
  /// Who was waited for meanwhile, behind the wait of cause number `cause`.
  const std::vector<ChainLink>& chain(std::size_t cause);
  std::string words(const ChainLink& link) const;
  /// What a value is and what it usually is; of a call on a cause's path behind that function's name.
  std::string words(const ValueHint& hint) const;
  /// `4711@1200ns`: names the call.
  std::string id() const;

  double share(double ticks) const { return of_.excess() == 0 ? 0 : ticks / of_.excess(); }
  std::string time(double ticks) const;

  /// Fields of an object that is open. `more` adds some to a cause's.
  void write(Json& json, const std::function<void(Json&, const Cause&)>& more = {});

 private:
  const reader::Process& process(const reader::Thread& thread) const;
  std::uint64_t ns(std::uint64_t ticks) const { return about_.trace.clock().to_ns(ticks); }
  std::int64_t signed_ns(double ticks) const;
  std::uint64_t since_start() const;
  std::string function_name(const reader::Thread& thread, std::uint32_t id) const;
  std::string words(const Wait& wait) const { return words(wait, kept_off_.of(wait)); }
  std::string words(const Wait& wait, const KeptOff& kept) const;
  void write_values(Json& json, const std::vector<ValueHint>& values) const;
  std::string who(const ChainLink& link, bool innermost) const;

  const About about_;
  const Explainer& explainer_;
  const Explanation of_;
  const KeptOffFinder kept_off_;
  LockWaitFinder locks_;
  std::vector<std::optional<std::vector<ChainLink>>> chains_;  // by cause
};

}  // namespace karst::analysis
