// karst locks: waits for locks, by lock and by pair of functions.
#include "analysis/locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/csv.h"
#include "cli/names.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::Lock;
using analysis::LockPair;
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
      11 waits, 301.2 ms: Server::serve, while Journal::append had it

  cache     what the program called it by karst_name_lock(&lock, "cache")
  had it    what the thread that had the lock was in as the wait began

A trace has such waits if it was made by 'karst run --system locks'. csv has a
row for each wait, times in nanoseconds; json the locks with all their pairs.
--function takes waits of these functions alone.)";

class LockPrinter {
 public:
  LockPrinter(const Input& input, const std::vector<LockWait>& waits, std::size_t limit)
      : input_(input), names_(input.trace), waits_(waits), locks_(analysis::locks_of(input.trace, names_, waits)) {
    shown_ = limit == 0 ? locks_.size() : std::min(limit, locks_.size());
  }

  void print_text(Screen& screen) const {
    std::uint64_t total = 0;
    for (const Lock& lock : locks_) total += lock.total;
    line(screen,
         fmt::format("{}: {} for {}, {} in all", input_.trace.name(), plural(waits_.size(), "wait"),
                     plural(locks_.size(), "lock"), duration(total)),
         2);
    for (std::size_t i = 0; i < shown_; ++i) print_lock(screen, i + 1, locks_[i]);
    if (shown_ < locks_.size())
      line(screen, fmt::format("({} more; --limit 0: all)", plural(locks_.size() - shown_, "lock")), 0);
  }

  void print_csv(Output& output) const {
    output.append("begin_ns,duration_ns,open,kind,lock,name,pid,tid,thread,function,holder_tid,held_in\n");
    const std::uint64_t start = analysis::first_ticks(input_.trace);
    for (const LockWait& wait : waits_) {
      if (output.failed()) return;
      const reader::Process& process = input_.trace.processes()[wait.thread->process];
      output.append(fmt::format(
          "{},{},{},{},{:#x},{},{},{},{},{},{},{}\n", wait.begin > start ? ns(wait.begin - start) : 0,
          ns(wait.duration), wait.open ? 1 : 0, analysis::lock_kind(input_.trace, wait.thread->process, wait.zone),
          wait.lock, csv_field(names_.of(wait.thread->process, wait.lock)), process.pid, wait.thread->tid,
          csv_field(wait.thread->name), csv_field(name(process, wait.caller)), wait.holder, csv_field(held_in(wait))));
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
        write_sums(json, pair.waits, pair.total, pair.longest);
        json.close('}');
      }
      json.close(']').close('}').flush(output);
    }
    json.close(']').close('}').flush(output);
    output.append("\n");
  }

 private:
  std::uint64_t ns(std::uint64_t ticks) const { return input_.trace.clock().to_ns(ticks); }
  std::string duration(std::uint64_t ticks) const { return duration_text(ns(ticks)); }

  void write_sums(Json& json, std::uint64_t waits, std::uint64_t total, std::uint64_t longest) const {
    json.field("waits", waits).field("total_ns", ns(total)).field("longest_ns", ns(longest));
  }

  std::string_view name(const reader::Process& process, std::uint32_t function) const {
    return function == 0 ? std::string_view() : input_.trace.function(process, function).name;
  }
  std::string_view held_in(const LockWait& wait) const {
    if (wait.held_in.thread == nullptr) return {};
    return name(input_.trace.processes()[wait.held_in.thread->process], wait.held_in.function);
  }

  void line(Screen& screen, const std::string& text, std::size_t indent) const {
    screen.output().append(wrap(text, screen.width(), indent) + "\n");
  }

  void print_lock(Screen& screen, std::size_t number, const Lock& lock) const {
    const std::string address = fmt::format("{:#x}", lock.address);
    const std::string called = lock.name.empty() ? address : fmt::format("{} ({})", printable(lock.name), address);
    screen.output().append("\n");
    line(screen,
         fmt::format("{:2}. {} {}: {}, {}, longest {}", number, printable(lock.kind), called,
                     plural(lock.waits, "wait"), duration(lock.total), duration(lock.longest)),
         6);
    const reader::Process& process = input_.trace.processes()[lock.process];
    const auto plain = [&](std::uint32_t function) {
      return function == 0 ? std::string("nothing traced") : printable(plain_name(name(process, function)));
    };
    for (std::size_t i = 0; i < std::min(kMostPairs, lock.pairs.size()); ++i) {
      const LockPair& pair = lock.pairs[i];
      std::string text =
          fmt::format("      {}, {}: {}", plural(pair.waits, "wait"), duration(pair.total), plain(pair.waiter));
      if (pair.holder_known)
        text += fmt::format(", while {} had it", pair.holder == 0 ? "a thread in no traced call" : plain(pair.holder));
      line(screen, text, 8);
    }
    if (lock.pairs.size() > kMostPairs)
      line(screen, fmt::format("      and {} of functions", plural(lock.pairs.size() - kMostPairs, "more pair")), 8);
  }

  const Input& input_;
  analysis::LockNames names_;
  const std::vector<LockWait>& waits_;
  std::vector<Lock> locks_;
  std::size_t shown_ = 0;
};

int locks(const Options& options) {
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  std::vector<LockWait> waits;
  (*input)->each_thread("looking for waits", [&](const reader::Thread& thread, const reader::Calls& calls) {
    const std::vector<LockWait> of = analysis::lock_waits(trace, thread, calls, (*input)->function_set());
    waits.insert(waits.end(), of.begin(), of.end());
  });
  if (waits.empty())
    return fail({"no wait for a lock is in " + trace.name() +
                 ", or none passes the filters; 'karst run --system "
                 "locks' records them"});
  reader::Calls holder;
  analysis::find_holders(trace, waits, [&](const reader::Thread& thread) {
    holder = reader::rebuild_calls(trace, thread, std::move(holder));
    return query::CallColumns(holder);
  });
  const LockPrinter printer(**input, waits, options.limit);
  if (options.format == "text") {
    Screen screen(options.text);
    printer.print_text(screen);
    return screen.finish(&trace);
  }
  return print_data(
      options.format, trace, [&](Output& output) { printer.print_json(output); },
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
