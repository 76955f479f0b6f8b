// SPDX-License-Identifier: MIT
// An explanation (analysis/explain.h) in words. `karst explain` prints them and the page shows them, so both say the
// same. Texts are fit to be shown: names without parameters, nothing in them that a terminal would obey.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain.h"
#include "analysis/locks.h"
#include "analysis/waits.h"
#include "words/waits.h"

namespace karst::words {

/// "own time", "blocked", ...: for people and programs.
const char* kind_name(analysis::CauseKind kind);

/// Keeps references to what it is made of, except the explanation. Use from one thread.
class ExplainedCall {
 public:
  struct About {
    const reader::Trace& trace;
    analysis::CallRef call;
    std::uint32_t function = 0;              ///< id in its process
    std::uint64_t start = 0;                 ///< ticks that times count from
    const analysis::Waits* waits = nullptr;  ///< null: the trace has no thread states
    analysis::CallsOf calls_of;              ///< of those who were waited for, or had the CPU
  };
  /// `explainer` made `of`.
  ExplainedCall(About about, const analysis::Explainer& explainer, analysis::Explanation of);

  const About& about() const { return about_; }
  const analysis::FunctionList& functions() const { return explainer_.functions(); }
  const analysis::Explanation& explanation() const { return of_; }
  /// The answer in one sentence.
  std::string headline() const;
  /// What is usual, and of how many calls; for calls that have siblings.
  std::string comparison() const;
  /// Where a cause is.
  std::string place(const analysis::Cause& cause) const;
  /// What was different there.
  std::string what(const analysis::Cause& cause) const;
  std::optional<ToldWait> wait(const analysis::Cause& cause) const;
  /// Who was waited for meanwhile, behind the wait of cause number `cause`.
  const std::vector<ToldLink>& chain(std::size_t cause) const;
  /// What a value is and what it usually is; of a call on a cause's path behind that function's name.
  std::string words(const analysis::ValueHint& hint) const;
  /// `4711@1200ns`: names the call.
  std::string id() const;

  double share(double ticks) const { return of_.excess() == 0 ? 0 : ticks / of_.excess(); }
  std::string time(double ticks) const;
  std::int64_t ns(double ticks) const;

 private:
  std::string difference() const;
  std::string function_name(std::uint32_t number) const;
  std::string words_of_faults(const analysis::Cause& cause) const;

  const About about_;
  const analysis::Explainer& explainer_;
  const analysis::Explanation of_;
  const WaitTeller teller_;
  mutable analysis::LockWaitFinder locks_;
  mutable std::vector<std::optional<std::vector<ToldLink>>> chains_;  // by cause
};

}  // namespace karst::words
