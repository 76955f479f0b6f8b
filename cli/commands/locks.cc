// karst locks: waits for locks, by lock and by pair of functions; who had them, and what that says.
#include "analysis/locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/holds.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/commands/lock_dangers.h"
#include "cli/commands/lock_texts.h"
#include "cli/input/trace_input.h"
#include "cli/text/csv.h"
#include "cli/text/names.h"
#include "cli/text/table.h"
#include "cli/text/terminal.h"
#include "cli/text/text.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::HoldEnd;
using analysis::Lock;
using analysis::LockHold;
using analysis::LockHolds;
using analysis::LockPair;
using analysis::LockUse;
using analysis::LockWait;

struct Options {
  InputOptions input;
  std::string format = "text";
  std::size_t limit = 10;
  TextOptions text;
};

constexpr std::size_t kMostPairs = 5;  // of a lock, in text

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
told is what another lock keeps apart. Then come locks that were never let go.

A trace has such waits if it was made by 'karst run --system locks'. csv has a
row for each wait and each hold, times in nanoseconds; json the locks with all
their pairs. --function takes waits and holds of these functions alone.)";

/// What is known of a trace's locks.
struct Found {
  std::vector<LockWait> waits;
  bool holds_known = false;
  LockHolds holds;
};

bool has_ended(const LockHold& hold) {
  return hold.ended == HoldEnd::kReleased || hold.ended == HoldEnd::kReleasedByOther;
}
std::string_view end_word(HoldEnd end) {
  switch (end) {
    case HoldEnd::kReleased:
      return "let go";
    case HoldEnd::kReleasedByOther:
      return "let go by another thread";
    case HoldEnd::kThreadEnded:
      return "thread ended";
    case HoldEnd::kTraceEnded:
      return "trace ended";
    case HoldEnd::kUnknown:
      break;
  }
  return "not known";
}

class LockPrinter : LockTexts {
 public:
  LockPrinter(const Input& input, const Found& found, std::size_t limit)
      : LockTexts(input),
        found_(found),
        waits_(found.waits),
        locks_(analysis::locks_of(input.trace, names(), waits_)),
        use_(analysis::use_of_locks(found.holds, input.function_set())) {
    add_held_ones();
    shown_ = limit == 0 ? locks_.size() : std::min(limit, locks_.size());
  }

  void print_text(Screen& screen) const {
    std::uint64_t total = 0, waited = 0;
    for (const Lock& lock : locks_) {
      total += lock.total;
      if (lock.waits != 0) ++waited;
    }
    std::string text = fmt::format("{}: {} for {}, {} in all", input_.trace.name(), plural(waits_.size(), "wait"),
                                   plural(waited, "lock"), duration(total));
    if (found_.holds_known) text += fmt::format("; {} held", plural(use_.size(), "lock"));
    line(screen, text, 2);
    for (std::size_t i = 0; i < shown_; ++i) print_lock(screen, i + 1, locks_[i]);
    if (shown_ < locks_.size())
      line(screen, fmt::format("({} more; --limit 0: all)", plural(locks_.size() - shown_, "lock")), 0);
    screen.output().append("\n");
    if (!found_.holds_known) {
      line(screen,
           "How long locks were held, in which order they were taken and whether they were let go is not in this "
           "trace: 'karst run --system locks=all' records it.",
           0);
      return;
    }
    LockDangers(input_, found_.holds).print(screen);
  }

  void print_csv(Output& output) const {
    output.append(
        "begin_ns,duration_ns,open,kind,lock,name,pid,tid,thread,function,holder_tid,held_in,owners,what,ended\n");
    const std::uint64_t start = analysis::first_ticks(input_.trace);
    for (const LockWait& wait : waits_) {
      if (output.failed()) return;
      const reader::Process& process = input_.trace.processes()[wait.thread->process];
      output.append(fmt::format("{},{},{},{},{:#x},{},{},{},{},{},{},{},{},wait,\n",
                                wait.begin > start ? ns(wait.begin - start) : 0, ns(wait.duration), wait.open ? 1 : 0,
                                analysis::lock_kind(input_.trace, wait.thread->process, wait.zone), wait.lock,
                                csv_field(names().of(wait.thread->process, wait.lock)), process.pid, wait.thread->tid,
                                csv_field(wait.thread->name), csv_field(name(process, wait.caller)), wait.holder,
                                csv_field(held_in(wait)), wait.owners));
    }
    for (const LockHold& hold : found_.holds.holds) {
      if (output.failed()) return;
      if (!is_asked_for(hold)) continue;
      const reader::Process& process = input_.trace.processes()[hold.thread->process];
      output.append(fmt::format("{},{},{},{},{:#x},{},{},{},{},{},,{},,hold,{}\n",
                                hold.begin > start ? ns(hold.begin - start) : 0, ns(hold.end - hold.begin),
                                has_ended(hold) ? 0 : 1, hold.kind, hold.lock,
                                csv_field(names().of(hold.thread->process, hold.lock)), process.pid, hold.thread->tid,
                                csv_field(hold.thread->name), csv_field(name(process, hold.taken_in)),
                                csv_field(name(process, hold.released_in)), end_word(hold.ended)));
    }
  }

  void print_json(Output& output) const {
    Json json;
    json.open('{').field("trace", input_.trace.name()).key("locks").open('[');
    for (const Lock& lock : locks_) {
      const reader::Process& process = input_.trace.processes()[lock.process];
      json.line().open('{').field("kind", lock.kind).field("lock", fmt::format("{:#x}", lock.address));
      json.field("name", lock.name).field("pid", process.pid);
      write_sums(json, lock.waits, lock.total, lock.longest);
      json.key("pairs").open('[');
      for (const LockPair& pair : lock.pairs) {
        json.open('{').field("function", name(process, pair.waiter)).field("holder_known", pair.holder_known);
        json.field("held_in", name(process, pair.holder));
        if (pair.taker_known) json.field("taken_in", name(process, pair.taker));
        write_sums(json, pair.waits, pair.total, pair.longest);
        json.close('}');
      }
      json.close(']');
      if (found_.holds_known) write_use(json, process, use_of(lock));
      json.close('}').flush(output);
    }
    json.close(']').field("holds_known", found_.holds_known);
    if (found_.holds_known) LockDangers(input_, found_.holds).write(json);
    json.close('}').flush(output);
    output.append("\n");
  }

 private:
  using Address = std::pair<std::uint32_t, std::uint64_t>;

  /// Locks that nobody waited for, by how long they were held.
  void add_held_ones() {
    std::set<Address> there;
    for (const Lock& lock : locks_) there.insert({lock.process, lock.address});
    std::map<Address, std::string_view> kinds;
    for (const LockHold& hold : found_.holds.holds) kinds[{hold.thread->process, hold.lock}] = hold.kind;
    const std::size_t waited = locks_.size();
    for (const auto& [address, use] : use_) {
      if (there.contains(address)) continue;
      Lock lock;
      std::tie(lock.process, lock.address) = address;
      lock.kind = kinds[address].substr(0, kinds[address].find(' '));
      lock.name = names().of(lock.process, lock.address);
      locks_.push_back(lock);
    }
    std::stable_sort(locks_.begin() + static_cast<std::ptrdiff_t>(waited), locks_.end(),
                     [this](const Lock& a, const Lock& b) { return use_of(a).total > use_of(b).total; });
  }

  const LockUse& use_of(const Lock& lock) const {
    static const LockUse kNone;
    const auto at = use_.find({lock.process, lock.address});
    return at != use_.end() ? at->second : kNone;
  }
  void write_use(Json& json, const reader::Process& process, const LockUse& use) const {
    json.field("holds", use.holds).field("held_ns", ns(use.total)).field("longest_hold_ns", ns(use.longest));
    json.field("longest_hold_in", name(process, use.longest_in)).field("holds_without_end", use.unknown);
    json.key("convoys").open('[');
    for (const analysis::Convoy* convoy : use.convoys) {
      json.open('{').field("holds", convoy->holds.size()).field("begin_ns", ns(since_start(convoy->begin)));
      json.field("duration_ns", ns(convoy->end - convoy->begin)).close('}');
    }
    json.close(']');
  }

  void write_sums(Json& json, std::uint64_t waits, std::uint64_t total, std::uint64_t longest) const {
    json.field("waits", waits).field("total_ns", ns(total)).field("longest_ns", ns(longest));
  }

  std::string_view held_in(const LockWait& wait) const {
    if (wait.held_in.thread == nullptr) return {};
    return name(input_.trace.processes()[wait.held_in.thread->process], wait.held_in.function);
  }

  void print_lock(Screen& screen, std::size_t number, const Lock& lock) const {
    screen.output().append("\n");
    const std::string waits = lock.waits == 0 ? "no wait"
                                              : fmt::format("{}, {}, longest {}", plural(lock.waits, "wait"),
                                                            duration(lock.total), duration(lock.longest));
    line(screen,
         fmt::format("{:2}. {} {}: {}", number, printable(lock.kind), called(lock.process, lock.address), waits), 6);
    const reader::Process& process = input_.trace.processes()[lock.process];
    print_use(screen, process, use_of(lock));
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
  const std::vector<LockWait>& waits_;
  std::vector<Lock> locks_;
  std::map<Address, LockUse> use_;
  std::size_t shown_ = 0;
};

int locks(const Options& options) {
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
  if (const auto* functions = (*input)->function_set(); functions != nullptr)
    std::erase_if(found.waits,
                  [&](const LockWait& wait) { return !functions->contains(wait.thread->process, wait.caller); });
  if (found.waits.empty() && analysis::use_of_locks(found.holds, (*input)->function_set()).empty())
    return fail({"no wait for a lock is in " + trace.name() +
                 ", or none passes the filters; 'karst run --system "
                 "locks' records them"});
  analysis::fill_in_holders(found.holds, found.waits);
  reader::Calls holder;
  analysis::find_holders(trace, found.waits, [&](const reader::Thread& thread) {
    holder = reader::rebuild_calls(trace, thread, std::move(holder));
    return columns::CallColumns(holder);
  });
  const LockPrinter printer(**input, found, options.limit);
  if (options.format == "text") {
    Screen screen(options.text);
    say_partial(screen, **input);
    printer.print_text(screen);
    return screen.finish(&trace);
  }
  return print_data(
      options.format, **input, [&](Output& output) { printer.print_json(output); },
      [&](Output& output) { printer.print_csv(output); });
}

}  // namespace

void register_locks(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("locks", "Show which locks threads waited for, and who had them");
  command.footer(kFooter);
  add_file_option(command, options->input);
  add_format_options(command, options->format, {"text", "csv", "json"});
  command.add_option("-n,--limit", options->limit, "Show only the first N locks (text: 10; 0: all)").type_name("N");
  add_selection_options(command, options->input, "Take only waits of functions whose name matches");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = locks(*options); });
}

}  // namespace karst::cli
