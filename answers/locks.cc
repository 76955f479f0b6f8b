// SPDX-License-Identifier: MIT
#include "answers/locks.h"

#include <fmt/format.h>

namespace karst::answers {
namespace {

using analysis::HoldEnd;

std::string lock_address(std::uint64_t lock) { return fmt::format("{:#x}", lock); }

bool has_ended(const analysis::LockHold& hold) {
  return hold.ended == HoldEnd::kReleased || hold.ended == HoldEnd::kReleasedByOther;
}

/// Of a trace with holds.
template <typename Get>
Field of_holds(std::string key, Type type, std::string sentence, Get get) {
  return field_if_known<LockRow>(std::move(key), type, std::move(sentence),
                                 [get](const LockRow& r) { return r.in.holds_known ? value_of(get(r)) : Value(); });
}

template <typename Row>
std::vector<Field> sums_of_waits(std::string of) {
  return {field<Row>("waits", Type::kCount, "times that a thread waited for " + of,
                     [](const Row& r) { return r.of.waits; }),
          field<Row>("total", Type::kDuration, "of these waits together",
                     [](const Row& r) { return r.in.times.ns(r.of.total); }),
          field<Row>("longest", Type::kDuration, "the longest of them",
                     [](const Row& r) { return r.in.times.ns(r.of.longest); })};
}

}  // namespace

std::string_view hold_end_word(HoldEnd end) {
  switch (end) {
    case HoldEnd::kReleased:
      return "released";
    case HoldEnd::kReleasedByOther:
      return "released by another thread";
    case HoldEnd::kThreadEnded:
      return "thread ended";
    case HoldEnd::kTraceEnded:
      return "trace ended";
    case HoldEnd::kUnknown:
      break;
  }
  return "not known";
}

const Relation& lock_waits() {
  using Row = LockWaitRow;
  static const Relation relation{
      "lock_waits",
      "lock_wait",
      "A row for each time that a thread waited for a lock",
      {field<Row>("begin", Type::kTime, "after the trace's first event",
                  [](const Row& r) { return r.in.times.since_start(r.of.begin); }),
       field<Row>("duration", Type::kDuration, "how long it waited; of an open wait what is known of it",
                  [](const Row& r) { return r.in.times.ns(r.of.duration); }),
       field<Row>("open", Type::kFlag, "whether its begin or its end is not known",
                  [](const Row& r) { return r.of.open; }, {.shown = Look::Shown::kAsked}),
       field<Row>(
           "kind", Type::kText, "what kind of lock it is: mutex, rwlock, spinlock, condition, semaphore, barrier",
           [](const Row& r) { return analysis::lock_kind(r.in.trace, r.of.thread->process, r.of.zone); }, {.rank = 4}),
       field<Row>("lock", Type::kText, "its address", [](const Row& r) { return lock_address(r.of.lock); },
                  {.rank = 5}),
       field<Row>("name", Type::kText, "what the program called it by karst_name_lock()",
                  [](const Row& r) { return r.in.names.of(r.of.thread->process, r.of.lock); }, {.rank = 1}),
       field<Row>("process", Type::kProcess, "of its thread",
                  [](const Row& r) { return ProcessRef{r.of.thread->process}; }, {.rank = 6}),
       field<Row>("thread", Type::kThread, "that waited", [](const Row& r) { return ThreadRef{r.of.thread}; },
                  {.rank = 3}),
       field_if_known<Row>(
           "holder_tid", Type::kNumber, "the thread that had the lock as the wait began, by its id",
           [](const Row& r) { return r.of.holder == 0 ? Value() : value_of(std::uint64_t{r.of.holder}); },
           {.shown = Look::Shown::kAsked}),
       field_if_known<Row>("held_in", Type::kFunction, "the innermost call of that thread then",
                           [](const Row& r) {
                             const reader::Thread* const of = r.of.held_in.thread;
                             return of == nullptr ? Value() : Value(FunctionRef{of->process, r.of.held_in.function});
                           },
                           {.rank = 2, .most_width = 30}),
       field_if_known<Row>(
           "taken_in", Type::kFunction, "where that thread took it (karst run --system locks=all)",
           [](const Row& r) {
             return r.of.taken_known ? Value(FunctionRef{r.of.thread->process, r.of.taken_in}) : Value();
           },
           {.rank = 2, .most_width = 30}),
       field<Row>("owners", Type::kCount, "how many threads had it then, as far as holds tell",
                  [](const Row& r) { return r.of.owners; }, {.shown = Look::Shown::kAsked}),
       field<Row>("function", Type::kFunction, "that waited", [](const Row& r) {
         return FunctionRef{r.of.thread->process, r.of.caller};
       })}};
  return relation;
}

const Relation& lock_holds() {
  using Row = LockHoldRow;
  static const Relation relation{
      "lock_holds",
      "lock_hold",
      "A row for each time that a thread had a lock",
      {field<Row>("begin", Type::kTime, "after the trace's first event",
                  [](const Row& r) { return r.in.times.since_start(r.of.begin); }),
       field<Row>("duration", Type::kDuration,
                  "how long it had it; where the end is not known the least that it had it",
                  [](const Row& r) { return r.in.times.ns(r.of.end - r.of.begin); }),
       field<Row>("waited", Type::kDuration, "how long it had waited for it",
                  [](const Row& r) { return r.of.waited_from == 0 ? 0 : r.in.times.ns(r.of.begin - r.of.waited_from); },
                  {.rank = 3}),
       field<Row>("ended", Type::kText,
                  "how: released, released by another thread, thread ended, trace ended, not known",
                  [](const Row& r) { return hold_end_word(r.of.ended); }, {.rank = 4}),
       field<Row>("kind", Type::kText, "what kind of lock it is: mutex, rwlock, rwlock (shared), spinlock",
                  [](const Row& r) { return r.of.kind; }, {.rank = 5}),
       field<Row>("lock", Type::kText, "its address", [](const Row& r) { return lock_address(r.of.lock); },
                  {.rank = 6}),
       field<Row>("name", Type::kText, "what the program called it by karst_name_lock()",
                  [](const Row& r) { return r.in.names.of(r.of.thread->process, r.of.lock); }, {.rank = 1}),
       field<Row>("process", Type::kProcess, "of its thread",
                  [](const Row& r) { return ProcessRef{r.of.thread->process}; }, {.rank = 7}),
       field<Row>("thread", Type::kThread, "that had it", [](const Row& r) { return ThreadRef{r.of.thread}; },
                  {.rank = 2}),
       field_if_known<Row>(
           "released_in", Type::kFunction, "the function that released it",
           [](const Row& r) {
             return has_ended(r.of) ? Value(FunctionRef{r.of.thread->process, r.of.released_in}) : Value();
           },
           {.rank = 8, .shown = Look::Shown::kWide, .most_width = 30}),
       field<Row>("taken_in", Type::kFunction, "the function that took it", [](const Row& r) {
         return FunctionRef{r.of.thread->process, r.of.taken_in};
       })}};
  return relation;
}

const Relation& lock_pairs() {
  using Row = LockPairRow;
  const auto process = [](const Row& r) { return r.lock.of.process; };
  static const Relation relation{
      "lock_pairs",
      "lock_pair",
      "A row for each pair of functions of which one waited for a lock that the other one had",
      {field<Row>("waits", Type::kCount, "times that the function waited", [](const Row& r) { return r.of.waits; }),
       field<Row>("total", Type::kDuration, "of these waits together",
                  [](const Row& r) { return r.lock.in.times.ns(r.of.total); }),
       field<Row>("longest", Type::kDuration, "the longest of them",
                  [](const Row& r) { return r.lock.in.times.ns(r.of.longest); }),
       field_if_known<Row>("held_in", Type::kFunction, "what the thread that had the lock was in as the wait began",
                           [process](const Row& r) {
                             return r.of.holder_known ? Value(FunctionRef{process(r), r.of.holder}) : Value();
                           }),
       field_if_known<Row>("taken_in", Type::kFunction, "where that thread took it (karst run --system locks=all)",
                           [process](const Row& r) {
                             return r.of.taker_known ? Value(FunctionRef{process(r), r.of.taker}) : Value();
                           }),
       field<Row>("function", Type::kFunction, "that waited", [process](const Row& r) {
         return FunctionRef{process(r), r.of.waiter};
       })}};
  return relation;
}

const Relation& convoys() {
  using Row = ConvoyRow;
  static const Relation relation{
      "convoys",
      "convoy",
      "A row for each time that a lock went from waiter to waiter, three times in a row or more",
      {field<Row>("begin", Type::kTime, "when the first of them began to wait",
                  [](const Row& r) { return r.in.times.since_start(r.of.begin); }),
       field<Row>("duration", Type::kDuration, "until the last of them released it",
                  [](const Row& r) { return r.in.times.ns(r.of.end - r.of.begin); }),
       field<Row>("holds", Type::kCount, "how many had it", [](const Row& r) { return r.of.holds.size(); })}};
  return relation;
}

const Relation& locks() {
  using Row = LockRow;
  static const Relation relation = [] {
    Relation made{"locks", "lock", "A row for each lock that a thread waited for, or had", sums_of_waits<Row>("it")};
    std::vector<Field> more{
        of_holds("holds", Type::kCount, "times that a thread had it, of those whose end is known",
                 [](const Row& r) { return r.use.holds; }),
        of_holds("held", Type::kDuration, "of these holds together",
                 [](const Row& r) { return r.in.times.ns(r.use.total); }),
        of_holds("longest_hold", Type::kDuration, "the longest of them",
                 [](const Row& r) { return r.in.times.ns(r.use.longest); }),
        of_holds("longest_hold_in", Type::kFunction, "the function that took it for the longest",
                 [](const Row& r) {
                   return FunctionRef{r.of.process, r.use.longest_in};
                 }),
        of_holds("holds_without_end", Type::kCount, "holds whose end is not known",
                 [](const Row& r) { return r.use.unknown; }),
        rows<Row>("convoys", "times that it went from waiter to waiter", convoys(),
                  [](const Row& r, const UseRow& use) {
                    for (const analysis::Convoy* of : r.use.convoys) {
                      const ConvoyRow row{r.in, *of};
                      use(&row);
                    }
                  }),
        rows<Row>("pairs", "who waited for it while who had it", lock_pairs(),
                  [](const Row& r, const UseRow& use) {
                    for (const analysis::LockPair& of : r.of.pairs) {
                      const LockPairRow row{r, of};
                      use(&row);
                    }
                  }),
        field<Row>("process", Type::kProcess, "that it is in", [](const Row& r) { return ProcessRef{r.of.process}; }),
        field<Row>("kind", Type::kText,
                   "what kind of lock it is: mutex, rwlock, spinlock, condition, semaphore, barrier",
                   [](const Row& r) { return r.of.kind; }),
        field<Row>("lock", Type::kText, "its address", [](const Row& r) { return lock_address(r.of.address); }),
        field<Row>("name", Type::kText, "what the program called it by karst_name_lock()",
                   [](const Row& r) { return r.of.name; })};
    std::move(more.begin(), more.end(), std::back_inserter(made.fields));
    return made;
  }();
  return relation;
}

const Relation& lock_orders() {
  using Row = LockOrderRow;
  static const Relation relation{
      "lock_orders",
      "lock_order",
      "A row for each two locks of a ring, of which one was taken while the other one was held",
      {field<Row>("kind", Type::kText, "what kind of lock was held", [](const Row& r) { return r.held.kind; }),
       field<Row>("lock", Type::kText, "its address", [](const Row& r) { return lock_address(r.held.address); }),
       field<Row>("name", Type::kText, "what the program called it",
                  [](const Row& r) { return r.in.names.of(r.held.process, r.held.address); }),
       field<Row>("taken_in", Type::kFunction, "the function that took it",
                  [](const Row& r) {
                    return FunctionRef{r.of.thread->process, r.of.first_in};
                  }),
       field<Row>("next_lock", Type::kText, "the address of the lock that was taken then",
                  [](const Row& r) { return lock_address(r.taken.address); }),
       field<Row>("next_taken_in", Type::kFunction, "the function that took that one",
                  [](const Row& r) {
                    return FunctionRef{r.of.thread->process, r.of.second_in};
                  }),
       field<Row>("thread", Type::kThread, "that did so first", [](const Row& r) { return ThreadRef{r.of.thread}; }),
       field<Row>("begin", Type::kTime, "when it did", [](const Row& r) { return r.in.times.since_start(r.of.ticks); }),
       field<Row>("waits", Type::kFlag, "whether it did not get the second one until the end",
                  [](const Row& r) { return r.of.waits; }),
       field<Row>("times", Type::kCount, "how often that happened", [](const Row& r) { return r.of.times; })}};
  return relation;
}

const Relation& lock_rings() {
  using Row = LockRingRow;
  static const Relation relation{
      "lock_rings",
      "lock_ring",
      "A row for each ring of locks that as many threads can wait in for ever: two that were taken in both orders, or "
      "more",
      {rows<Row>("orders", "each lock with the one that was taken while it was held", lock_orders(),
                 [](const Row& r, const UseRow& use) {
                   for (std::size_t i = 0; i < r.of.size(); ++i) {
                     const LockOrderRow row{r.in, r.locks[r.of[i]], r.locks[r.of[(i + 1) % r.of.size()]], *r.orders[i]};
                     use(&row);
                   }
                 }),
       field<Row>("locks", Type::kCount, "how many are in it", [](const Row& r) { return r.of.size(); })}};
  return relation;
}

}  // namespace karst::answers
