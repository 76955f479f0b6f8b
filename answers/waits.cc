// SPDX-License-Identifier: MIT
#include "answers/waits.h"

#include "words/wait_words.h"

namespace karst::answers {
namespace {

/// Of a wait that is there; `get` gives what value_of() takes.
template <typename Get>
Field of_wait(std::string key, Type type, std::string sentence, Get get, Look look = {}) {
  return field_if_known<WaitRow>(
      std::move(key), type, std::move(sentence),
      [get](const WaitRow& r) { return r.told == nullptr ? Value() : value_of(get(r)); }, std::move(look));
}

/// Of a wait for a CPU, where it is known who had that.
template <typename Get>
Field of_kept_off(std::string key, Type type, std::string sentence, Get get) {
  return field_if_known<WaitRow>(std::move(key), type, std::move(sentence),
                                 [get](const WaitRow& r) {
                                   const bool known =
                                       r.told != nullptr && (!r.told->kept.empty() || r.told->kept.unknown != 0);
                                   return known ? value_of(get(r)) : Value();
                                 },
                                 {.shown = Look::Shown::kAsked});
}

}  // namespace

const Relation& path_calls() {
  static const Relation relation{
      "path_calls",
      "path_call",
      "A row for each call of a path, the outermost first",
      {field<FunctionRef>("function", Type::kFunction, "that was called", [](const FunctionRef& of) { return of; })}};
  return relation;
}

const Relation& cpu_shares() {
  using Row = CpuShareRow;
  static const Relation relation{
      "cpu_shares",
      "cpu_share",
      "A row for each thread that had the CPU while another one waited for it, the longest first",
      {field<Row>("name", Type::kText, "its id and name, also of threads of other programs",
                  [](const Row& r) { return words::share_words(r.of, r.trace.states()); }),
       field<Row>("duration", Type::kDuration, "how long it had it",
                  [](const Row& r) { return r.times.ns(r.of.ticks); }),
       field_if_known<Row>(
           "thread", Type::kThread, "of the trace",
           [](const Row& r) { return r.of.in.thread == nullptr ? Value() : Value(ThreadRef{r.of.in.thread}); }),
       field_if_known<Row>(
           "function", Type::kFunction, "that it was in for most of its longest stretch", [](const Row& r) {
             return r.of.in.row == reader::kNoParent ? Value()
                                                     : Value(FunctionRef{r.of.in.thread->process, r.of.in.function});
           })}};
  return relation;
}

std::vector<Field> wait_fields() {
  using Row = WaitRow;
  return {of_wait("wait_begin", Type::kTime, "when it began to wait",
                  [](const Row& r) { return r.times.since_start(r.told->of.begin); }, {.shown = Look::Shown::kAsked}),
          of_wait("wait", Type::kDuration, "how long it waited, for a CPU, too",
                  [](const Row& r) { return r.times.ns(r.told->of.length()); }),
          rows<Row>("kept_off_by", "who had the CPU that it waited for", cpu_shares(),
                    [](const Row& r, const UseRow& use) {
                      if (r.told == nullptr) return;
                      for (const analysis::CpuShare& share : r.told->kept.shares) {
                        const CpuShareRow row{r.trace, r.times, share};
                        use(&row);
                      }
                    }),
          of_kept_off("kept_off_not_known", Type::kDuration, "the part of that in which nobody knows who had it",
                      [](const Row& r) { return r.times.ns(r.told->kept.unknown); }),
          of_kept_off("kept_off_others", Type::kCount, "how many more had it",
                      [](const Row& r) { return r.told->kept.more; }),
          of_kept_off("kept_off_more", Type::kDuration, "how long these had it",
                      [](const Row& r) { return r.times.ns(r.told->kept.more_ticks); }),
          of_wait("wait_words", Type::kText, "what it waited for, and who ended that",
                  [](const Row& r) -> const std::string& { return r.told->words; })};
}

const Relation& chain_links() {
  using Row = LinkRow;
  static const Relation relation{
      "chain_links", "chain_link",
      "A row for each thread that was waited for: who ended the wait, who ended that one's own, and so on",
      joined({{field<Row>("thread", Type::kThread, "who was waited for",
                          [](const Row& r) { return ThreadRef{r.of.of.thread}; }),
               rows<Row>("path", "the calls that it was in for most of that time", path_calls(),
                         [](const Row& r, const UseRow& use) {
                           for (const std::uint32_t function : r.of.of.functions) {
                             const FunctionRef row{r.of.of.thread->process, function};
                             use(&row);
                           }
                         })},
              fields_of<Row>(wait_fields(), [](const Row& r) { return r.wait(); }),
              {field<Row>("words", Type::kText, "what it did meanwhile",
                          [](const Row& r) -> const std::string& { return r.of.words; })}})};
  return relation;
}

}  // namespace karst::answers
