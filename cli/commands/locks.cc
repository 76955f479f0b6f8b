// SPDX-License-Identifier: MIT
// karst locks: waits for locks, by lock and by pair of functions; who had them, and what that says.
#include "analysis/locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/holds.h"
#include "answers/locks.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/commands/answer.h"
#include "cli/commands/lock_dangers.h"
#include "cli/commands/lock_texts.h"
#include "cli/input/trace_input.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::Lock;
using analysis::LockAndUse;
using analysis::LockHold;
using analysis::LockHolds;
using analysis::LockPair;
using analysis::LockUse;
using analysis::LockWait;

struct Options {
  InputOptions input;
  AnswerOptions answer;
  std::string by = "lock";
};

constexpr std::size_t kMostPairs = 5;  // of a lock, in text

constexpr std::string_view kNoHolds =
    "How long locks were held, in which order they were taken and whether they were released is not in this trace: "
    "'karst run --system locks=all' records it.";

constexpr const char* kFooter = R"(Output: locks that threads waited for, longest together first; conditions and
semaphores last, as most threads that wait for those have nothing to do:

 1. mutex cache (0x7ffd6e10): 14 waits, 377.0 ms, longest 28.46 ms
      11 waits, 301.2 ms: Server::serve, while who had it was in fsync_all

  cache     what the program called it by karst_name_lock(&lock, "cache")
  was in    the innermost call of the thread that had the lock, as the wait began

With 'karst run --system locks=all' a trace has also who had which lock when:

      11 waits, 301.2 ms: Server::serve, while Journal::append had it (then in
        fsync_all)
      held 3120 times for 400.1 ms, longest 30.02 ms, taken in Journal::append
      convoy: 7 times in a row it went from one that waited to the next, in 40.11 ms

Below are pairs of locks that were taken in both orders, with both places: two
threads that do so at once wait for ever. So do as many threads as there are
locks in a ring, of which each was taken while the one before it was held. Not
told is what another lock keeps apart. Then come locks that were never released.

--by wait has a table of all waits, --by hold one of all holds, with --sort and
--columns of their own. json of locks has all their pairs and convoys, and the rings.

A trace has such waits if it was made by 'karst run --system locks'. --function
takes waits and holds of these functions alone.)";

/// What is known of a trace's locks.
struct Found {
  std::vector<LockWait> waits;
  std::vector<LockAndUse> locks;
  bool holds_known = false;
  LockHolds holds;
};

class LockPrinter : LockTexts {
 public:
  LockPrinter(const Input& input, const Found& found) : LockTexts(input), found_(found) {}

  /// `locks`: rows of answers::locks().
  void print(Screen& screen, const Answer& locks) const {
    std::uint64_t total = 0, waited = 0, held = 0;
    for (const LockAndUse& lock : found_.locks) {
      total += lock.of.total;
      if (lock.of.waits != 0) ++waited;
      if (lock.use.holds + lock.use.unknown != 0) ++held;
    }
    std::string text = fmt::format("{}: {} for {}, {} in all", input_.trace.name(), plural(found_.waits.size(), "wait"),
                                   plural(waited, "lock"), duration(total));
    if (found_.holds_known) text += fmt::format("; {} held", plural(held, "lock"));
    line(screen, text, 2);
    std::size_t number = 0;
    for (const void* row : locks.rows()) {
      const auto& lock = *static_cast<const answers::LockRow*>(row);
      print_lock(screen, ++number, lock.of, lock.use);
    }
    locks.say_left_out(screen, "lock");
    screen.output().append("\n");
    if (found_.holds_known) return LockDangers(input_, found_.holds).print(screen);
    line(screen, std::string(kNoHolds), 0);
  }

 private:
  void print_lock(Screen& screen, std::size_t number, const Lock& lock, const LockUse& use) const {
    screen.output().append("\n");
    const std::string waits = lock.waits == 0 ? "no wait"
                                              : fmt::format("{}, {}, longest {}", plural(lock.waits, "wait"),
                                                            duration(lock.total), duration(lock.longest));
    line(screen,
         fmt::format("{:2}. {} {}: {}", number, printable(lock.kind), called(lock.process, lock.address), waits), 6);
    const reader::Process& process = input_.trace.processes()[lock.process];
    print_use(screen, process, use);
    for (std::size_t i = 0; i < std::min(kMostPairs, lock.pairs.size()); ++i) {
      const LockPair& pair = lock.pairs[i];
      std::string text = fmt::format("      {}, {}: {}", plural(pair.waits, "wait"), duration(pair.total),
                                     plain(process, pair.waiter));
      text += holder_words(process, pair);
      line(screen, text, 8);
    }
    if (lock.pairs.size() > kMostPairs)
      line(screen, fmt::format("      and {} of functions", plural(lock.pairs.size() - kMostPairs, "more pair")), 8);
  }

  /// Who took the lock is to be changed; what the thread was in then is the next thing to know.
  std::string holder_words(const reader::Process& process, const LockPair& pair) const {
    const std::string in = pair.holder == 0 ? "no traced call" : plain(process, pair.holder);
    if (pair.taker_known && pair.taker != 0) {
      const std::string taker = plain(process, pair.taker);
      return fmt::format(", while {} had it", taker) +
             (pair.holder_known && in != taker ? " (then in " + in + ")" : "");
    }
    return pair.holder_known ? ", while who had it was in " + in : std::string();
  }

  void print_use(Screen& screen, const reader::Process& process, const LockUse& use) const {
    if (use.holds != 0)
      line(screen,
           fmt::format("      held {} for {}, longest {}, taken in {}", plural(use.holds, "time"), duration(use.total),
                       duration(use.longest), plain(process, use.longest_in)),
           8);
    if (use.unknown != 0)
      line(screen, fmt::format("      {} more whose end is not known", plural(use.unknown, "hold")), 8);
    if (use.convoys.empty()) return;
    const analysis::Convoy& longest = *use.convoys.front();
    line(screen,
         fmt::format("      convoy: {} times in a row it went from one that waited to the next, in {}{}",
                     longest.holds.size(), duration(longest.end - longest.begin),
                     use.convoys.size() == 1 ? std::string()
                                             : fmt::format("; {}", plural(use.convoys.size() - 1, "more convoy"))),
         8);
  }

  const Found& found_;
};

/// The waits, or the holds, as a table or for programs.
template <typename Row, typename Of>
int print_rows(const Input& input, const Options& options, const answers::LockContext& context,
               const answers::Relation& relation, const std::vector<Of>& all) {
  std::vector<Row> rows;
  rows.reserve(all.size());
  for (const Of& of : all) rows.push_back({context, of});
  return print_table_or_data(options.answer, input, Answer(input.trace, relation, options.answer, addresses(rows)));
}

int print_locks(const Input& input, const Found& found, const Options& options, const answers::LockContext& context) {
  std::vector<answers::LockRow> rows;
  rows.reserve(found.locks.size());
  for (const LockAndUse& lock : found.locks) rows.push_back({context, lock.of, lock.use});
  const Answer answer(input.trace, answers::locks(), options.answer, addresses(rows));
  if (options.answer.is_text()) {
    if (Status sorted = answer.known(); !sorted) return fail(sorted.error());
    Screen screen(options.answer.text);
    say_partial(screen, input);
    LockPrinter(input, found).print(screen, answer);
    return screen.finish(&input.trace);
  }
  return print_answer(options.answer, input, answer, [&](Json& json) {
    json.field("holds_known", found.holds_known);
    if (found.holds_known) LockDangers(input, found.holds).write(json, context);
  });
}

int locks(const Options& options) {
  if (options.by == "lock" && !options.answer.columns.empty())
    return usage_error("--columns goes with --by wait and --by hold: locks are no table", "locks");
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  Found found;
  found.holds_known = analysis::has_holds(trace);
  analysis::HoldFinder holds(trace);
  (*input)->each_thread("looking for locks", [&](const reader::Thread& thread, const reader::Calls& calls) {
    const std::vector<LockWait> of = analysis::lock_waits(trace, thread, calls, nullptr);
    found.waits.insert(found.waits.end(), of.begin(), of.end());
    if (found.holds_known) holds.add(thread, calls);
  });
  found.holds = holds.take(found.waits);
  found.holds_known &= !found.holds.stripped;
  const auto* const functions = (*input)->function_set();
  if (functions != nullptr) {
    std::erase_if(found.waits,
                  [&](const LockWait& wait) { return !functions->contains(wait.thread->process, wait.caller); });
  }
  analysis::fill_in_holders(found.holds, found.waits);
  reader::Calls holder;
  analysis::find_holders(trace, found.waits, [&](const reader::Thread& thread) {
    holder = reader::rebuild_calls(trace, thread, std::move(holder));
    return columns::CallColumns(holder);
  });
  const analysis::LockNames names(trace);
  found.locks = analysis::locks_with_use(trace, names, found.waits, found.holds, functions);
  if (found.locks.empty())
    return fail({"no wait for a lock is in " + trace.name() +
                 ", or none passes the filters; 'karst run --system "
                 "locks' records them"});
  const answers::LockContext context{trace, names, found.holds_known, answers::Times(trace)};
  if (options.by == "wait")
    return print_rows<answers::LockWaitRow>(**input, options, context, answers::lock_waits(), found.waits);
  if (options.by == "lock") return print_locks(**input, found, options, context);
  if (!found.holds_known) return fail({trace.name() + ": " + std::string(kNoHolds)});
  std::vector<LockHold>& all = found.holds.holds;
  if (functions != nullptr)
    std::erase_if(all, [&](const LockHold& of) { return !functions->contains(of.thread->process, of.taken_in); });
  return print_rows<answers::LockHoldRow>(**input, options, context, answers::lock_holds(), all);
}

}  // namespace

void register_locks(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("locks", "Show which locks threads waited for, and who had them");
  command.footer(kFooter);
  add_file_option(command, options->input);
  command.add_option("--by", options->by, "A row for each lock (the default), for each wait, or for each hold")
      .check(one_of({"lock", "wait", "hold"}))
      .type_name("lock|wait|hold");
  add_answer_options(command, options->answer, {&answers::locks(), &answers::lock_waits(), &answers::lock_holds()},
                     "rows", "", 10);
  add_selection_options(command, options->input, "Take only waits of functions whose name matches");
  command.callback([options, &status] { status = locks(*options); });
}

}  // namespace karst::cli
