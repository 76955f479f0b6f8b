// SPDX-License-Identifier: MIT
#include "answers/standing.h"

namespace karst::answers {
namespace {

const Relation& standing_calls() {
  using Row = StandingCallRow;
  static const Relation relation{
      "standing_calls",
      "standing_call",
      "A row for each call that a thread is in, the innermost first",
      {field<Row>("file", Type::kText, "its source",
                  [](const Row& r) -> const std::string& { return r.function.file; }),
       field<Row>("line", Type::kNumber, "where it begins there", [](const Row& r) { return r.function.line; }),
       field<Row>("open", Type::kDuration, "how long ago it began", [](const Row& r) { return r.open_ns; }),
       field<Row>("since_earlier", Type::kFlag, "whether it began before the kept history",
                  [](const Row& r) { return r.since_earlier; }),
       field<Row>("function", Type::kText, "its name",
                  [](const Row& r) -> const std::string& { return r.function.name; })}};
  return relation;
}

const Relation& standing_threads() {
  using Row = StandingThreadRow;
  static const Relation relation{
      "standing_threads",
      "standing_thread",
      "A row for each thread, the one that crashed first",
      {field<Row>("tid", Type::kNumber, "its number", [](const Row& r) { return r.tid; }),
       field<Row>("name", Type::kText, "what it is called", [](const Row& r) -> const std::string& { return r.name; }),
       field_if_known<Row>("holder_tid", Type::kNumber, "the thread that seems to hold what it waits for",
                           [](const Row& r) { return r.holder; }),
       rows<Row>("calls", "the calls that it is in", standing_calls(),
                 [](const Row& r, const UseRow& use) {
                   for (const StandingCallRow& call : r.calls) use(&call);
                 }),
       field<Row>("state", Type::kText, "what it does, in words; empty: not known",
                  [](const Row& r) -> const std::string& { return r.state; })}};
  return relation;
}

}  // namespace

const Relation& standing_processes() {
  using Row = StandingProcessRow;
  static const Relation relation{
      "standing_processes",
      "standing_process",
      "A row for each process",
      {field<Row>("pid", Type::kNumber, "its number", [](const Row& r) { return r.pid; }),
       field_if_known<Row>("crash", Type::kText, "what ended it", [](const Row& r) { return r.crash; }),
       field_if_known<Row>("crashed_tid", Type::kNumber, "the thread that crashed",
                           [](const Row& r) { return r.crashed_tid; }),
       rows<Row>("threads", "its threads", standing_threads(),
                 [](const Row& r, const UseRow& use) {
                   for (const StandingThreadRow& thread : r.threads) use(&thread);
                 }),
       field<Row>("name", Type::kText, "what it is called", [](const Row& r) { return r.name; })},
      nullptr,
      {},
      "processes"};
  return relation;
}

}  // namespace karst::answers
