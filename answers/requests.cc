// SPDX-License-Identifier: MIT
#include "answers/requests.h"

#include "base/text.h"

namespace karst::answers {

namespace {

/// A part of its work, where the trace has states.
template <typename Part>
Field part_of_work(std::string key, std::string sentence, Part part, int rank,
                   Look::Shown shown = Look::Shown::kAlways) {
  const auto get = [part](const RequestRow& r) {
    return r.of.states ? value_of(r.times.ns((*r.of.states).*part)) : Value();
  };
  return field_if_known<RequestRow>(std::move(key), Type::kDuration, std::move(sentence), get,
                                    {.rank = rank, .shown = shown});
}

std::string request_duration(const RequestRow& r) {
  return (r.of.begun ? "" : "<") + duration_text(r.times.ns(r.of.duration())) + (r.of.ended ? " " : ">");
}

}  // namespace

const Relation& requests() {
  using reader::StateTimes;
  static const Relation relation{
      "requests",
      "request",
      "A row for each request that the program told of with karst.h",
      {field<RequestRow>("process", Type::kProcess, "whose request it is",
                         [](const RequestRow& r) { return ProcessRef{r.of.process}; }, {.rank = 4}),
       field<RequestRow>("request", Type::kId, "its number, as the program says it",
                         [](const RequestRow& r) { return r.of.id; }),
       field<RequestRow>("begin", Type::kTime, "after the trace's first event",
                         [](const RequestRow& r) { return r.times.since_start(r.of.begin); }, {.rank = 5}),
       field<RequestRow>(
           "duration", Type::kDuration,
           "from the note that it begins to the note that it ends; without them from the first work on it or to "
           "the last ('<', '>')",
           [](const RequestRow& r) { return r.times.ns(r.of.duration()); },
           {.title = "duration ", .words = words<RequestRow>(request_duration)}),
       field<RequestRow>("begun", Type::kFlag, "whether there is a note of its begin",
                         [](const RequestRow& r) { return r.of.begun; }, {.shown = Look::Shown::kAsked}),
       field<RequestRow>("ended", Type::kFlag, "whether there is a note of its end",
                         [](const RequestRow& r) { return r.of.ended; }, {.shown = Look::Shown::kAsked}),
       field<RequestRow>("idle", Type::kDuration, "time in which no thread worked on it: it waited in a queue",
                         [](const RequestRow& r) { return r.times.ns(r.of.idle); }, {.rank = 2}),
       field<RequestRow>("work", Type::kDuration, "of all threads together, while they said karst_request(ID)",
                         [](const RequestRow& r) { return r.times.ns(r.of.worked); },
                         {.rank = 3, .shown = Look::Shown::kWide}),
       part_of_work("cpu", "part of the work on a CPU", &StateTimes::running, 6),
       part_of_work("runnable", "part of the work in which a thread had no CPU", &StateTimes::runnable, 8,
                    Look::Shown::kWide),
       part_of_work("blocked", "part of the work in which a thread waited", &StateTimes::blocked, 1),
       part_of_work("unknown", "part of the work of which the state is not known", &StateTimes::unknown, 0,
                    Look::Shown::kAsked),
       field<RequestRow>("threads", Type::kCount, "that worked on it", [](const RequestRow& r) { return r.of.threads; },
                         {.rank = 7}),
       field<RequestRow>("calls", Type::kCount, "that began in that time",
                         [](const RequestRow& r) { return r.of.calls; }, {.rank = 9}),
       field<RequestRow>("most", Type::kDuration, "the greatest self time that a function has in it",
                         [](const RequestRow& r) { return r.times.ns(r.of.most_ticks); }, {.rank = 10}),
       field<RequestRow>("most_in", Type::kFunction, "the function with that time",
                         [](const RequestRow& r) {
                           return FunctionRef{r.of.process, r.of.most_in};
                         },
                         {.title = "most in"})}};
  return relation;
}

}  // namespace karst::answers
