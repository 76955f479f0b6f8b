#include "answers/requests.h"

#include "base/text.h"

namespace karst::answers {

using Row = RequestRow;
using Shown = Look::Shown;

namespace {

/// A part of its work, where the trace has states.
template <typename Part>
Field state(std::string key, std::string sentence, Part part, int rank, Shown shown = Shown::kAlways) {
  const auto get = [part](const Row& r) { return r.of.states ? value_of(r.times.ns((*r.of.states).*part)) : Value(); };
  return field<Row>(std::move(key), Type::kDuration, std::move(sentence), get, {.rank = rank, .shown = shown});
}

std::string duration_words(const Row& r) {
  return (r.of.begun ? "" : "<") + duration_text(r.times.ns(r.of.duration())) + (r.of.ended ? " " : ">");
}

}  // namespace

const Relation& requests() {
  using reader::StateTimes;
  static const Relation relation{
      "requests",
      "A row for each request that the program told of with karst.h",
      {field<Row>("process", Type::kProcess, "whose request it is",
                  [](const Row& r) { return ProcessRef{r.of.process}; }, {.rank = 4}),
       field<Row>("request", Type::kId, "its number, as the program says it", [](const Row& r) { return r.of.id; }),
       field<Row>("begin", Type::kTime, "after the trace's first event",
                  [](const Row& r) { return r.times.since_start(r.of.begin); }, {.rank = 5}),
       field<Row>("duration", Type::kDuration,
                  "from the note that it begins to the note that it ends; without them from the first work on it or to "
                  "the last ('<', '>')",
                  [](const Row& r) { return r.times.ns(r.of.duration()); },
                  {.title = "duration ", .words = words<Row>(duration_words)}),
       field<Row>("begun", Type::kFlag, "whether there is a note of its begin", [](const Row& r) { return r.of.begun; },
                  {.shown = Shown::kAsked}),
       field<Row>("ended", Type::kFlag, "whether there is a note of its end", [](const Row& r) { return r.of.ended; },
                  {.shown = Shown::kAsked}),
       field<Row>("idle", Type::kDuration, "time in which no thread worked on it: it waited in a queue",
                  [](const Row& r) { return r.times.ns(r.of.idle); }, {.rank = 2}),
       field<Row>("work", Type::kDuration, "of all threads together, while they said karst_request(ID)",
                  [](const Row& r) { return r.times.ns(r.of.worked); }, {.rank = 3, .shown = Shown::kWide}),
       state("cpu", "part of the work on a CPU", &StateTimes::running, 6),
       state("runnable", "part of the work in which a thread had no CPU", &StateTimes::runnable, 8, Shown::kWide),
       state("blocked", "part of the work in which a thread waited", &StateTimes::blocked, 1),
       state("unknown", "part of the work of which the state is not known", &StateTimes::unknown, 0, Shown::kAsked),
       field<Row>("threads", Type::kCount, "that worked on it", [](const Row& r) { return r.of.threads; }, {.rank = 7}),
       field<Row>("calls", Type::kCount, "that began in that time", [](const Row& r) { return r.of.calls; },
                  {.rank = 9}),
       field<Row>("most", Type::kDuration, "the greatest self time that a function has in it",
                  [](const Row& r) { return r.times.ns(r.of.most_ticks); }, {.rank = 10}),
       field<Row>("most_in", Type::kFunction, "the function with that time",
                  [](const Row& r) {
                    return FunctionRef{r.of.process, r.of.most_in};
                  },
                  {.title = "most in"})}};
  return relation;
}

}  // namespace karst::answers
