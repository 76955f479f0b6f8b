// SPDX-License-Identifier: MIT
// The relations of an explanation (analysis/explain.h): the call, its causes, and values that are not usual.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "analysis/explain.h"
#include "answers/locks.h"
#include "answers/relation.h"
#include "answers/waits.h"
#include "words/explanation.h"

namespace karst::answers {

/// An explained call. Keeps a reference to it.
class Explained {
 public:
  explicit Explained(const words::ExplainedCall& call);

  const words::ExplainedCall& call;
  const Times times;

  const reader::Trace& trace() const { return call.about().trace; }
  /// Of a number of words::ExplainedCall::functions().
  FunctionRef function(std::uint32_t number) const { return functions_[number]; }

 private:
  std::vector<FunctionRef> functions_;
};

struct ExplanationRow {
  const Explained& in;
  const LockWaitRow* lock = nullptr;  ///< the wait for a lock that is a great part of it; null: there is none
};

struct CauseRow {
  CauseRow(const Explained& explained, std::size_t cause);

  const Explained& in;
  const std::size_t number;
  const analysis::Cause& of;
  const std::optional<words::ToldWait> told;

  WaitRow wait() const { return {in.trace(), in.times, told ? &*told : nullptr}; }
};

struct ValueHintRow {
  const Explained& in;
  const analysis::ValueHint& of;
};

const Relation& explanations();
const Relation& causes();
const Relation& value_hints();

}  // namespace karst::answers
