// SPDX-License-Identifier: MIT
#include "answers/calls.h"

namespace karst::answers {

const Relation& calls() {
  static const Relation relation{
      "calls",
      "call",
      "A row for each call, thread by thread in order of begin",
      {field<CallRow>("call", Type::kText, "thread id and begin, as karst explain --call takes them",
                      [](const CallRow& r) { return r.place; }),
       field<CallRow>("function", Type::kFunction, "what was called",
                      [](const CallRow& r) {
                        return FunctionRef{r.thread->process, r.function};
                      }),
       field<CallRow>("begin", Type::kTime, "after the trace's first event",
                      [](const CallRow& r) { return r.begin_ns; }),
       field<CallRow>("duration", Type::kDuration, "with all it called; of an open call what is known of it",
                      [](const CallRow& r) { return r.duration_ns; }),
       field<CallRow>("open", Type::kText, "which of its begin and its end is not known: begin, end, begin and end",
                      [](const CallRow& r) { return r.open(); }),
       field<CallRow>("process", Type::kProcess, "of its thread",
                      [](const CallRow& r) { return ProcessRef{r.thread->process}; }),
       field<CallRow>("thread", Type::kThread, "that it was made in",
                      [](const CallRow& r) { return ThreadRef{r.thread}; }),
       field<CallRow>("caller", Type::kFunction, "the traced call that it was made in",
                      [](const CallRow& r) {
                        return FunctionRef{r.thread->process, r.caller};
                      }),
       field<CallRow>("arguments", Type::kText, "what it was given (karst run --args)",
                      [](const CallRow& r) { return r.arguments; }),
       field<CallRow>("returned", Type::kText, "what it returned (karst run --returns)",
                      [](const CallRow& r) { return r.returned; })}};
  return relation;
}

}  // namespace karst::answers
