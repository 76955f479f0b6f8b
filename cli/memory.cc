// karst memory: who took memory, how much, and what of it stayed.
#include "analysis/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/path_text.h"
#include "base/json.h"
#include "base/output.h"
#include "cli/call_name.h"
#include "cli/command.h"
#include "cli/csv.h"
#include "cli/memory_use.h"
#include "cli/names.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "reader/trace.h"

namespace karst::cli {
namespace {

using analysis::MemorySum;
using analysis::MemoryUse;

struct Options {
  InputOptions input;
  std::string format = "text";
  std::string by = "function";
  std::string sort = "bytes";
  std::string columns;  // empty: the default ones
  std::string call;     // empty: all
  std::size_t limit = 20;
  TextOptions text;
};

constexpr const char* kFooter = R"(Columns, of what each function took itself, by malloc, new and their like:
  bytes        all that it took       allocs  how often
  living       what of it was not freed at the end: of the program, or --range
  at peak      what of it there was when most bytes were living at once
  short        allocations that were freed by the thread as the next thing
  mapped       bytes of mmap, brk and sbrk; living-mapped: those that were not
               given back at the end
A trace has this if it was made by 'karst run --system memory'. With
'--system memory=512K' one allocation in 512 KiB was recorded, by chance;
numbers are estimates then, and the head says how far they may be off (95%).
realloc frees one and takes one. --range A..B shows what grew between the two.
--below REGEX: what these functions and all that they called took. --call
TID@TIME: what one call took, as karst calls and explain name it; living is what
was not freed by its end.
By --by path, a row has the calls that led there, the innermost first.
Pictures: karst flame --by allocated, --by living or --by peak.)";

/// What --sort goes by, and how a column shows it.
struct Amount {
  const char* key;
  const char* title;
  double (*of)(const MemorySum&);
  bool is_bytes;
  bool narrow;
  int rank;
};
constexpr Amount kAmounts[] = {
    {"bytes", "bytes", [](const MemorySum& s) { return s.bytes; }, true, true, 0},
    {"allocs", "allocs", [](const MemorySum& s) { return s.allocations; }, false, true, 2},
    {"living", "living", [](const MemorySum& s) { return s.living_bytes; }, true, true, 0},
    {"living-allocs", "living allocs", [](const MemorySum& s) { return s.living; }, false, false, 6},
    {"peak", "at peak", [](const MemorySum& s) { return s.peak_bytes; }, true, true, 3},
    {"short", "short", [](const MemorySum& s) { return s.short_lived; }, false, true, 4},
    {"failed", "failed", [](const MemorySum& s) { return s.failed; }, false, false, 6},
    {"mapped", "mapped", [](const MemorySum& s) { return s.mapped_bytes; }, true, false, 6},
    {"living-mapped", "living mapped", [](const MemorySum& s) { return s.mapped_living_bytes; }, true, false, 6},
};

std::uint64_t whole(double amount) { return amount <= 0 ? 0 : static_cast<std::uint64_t>(std::llround(amount)); }

std::string amount_text(const Amount& amount, const MemorySum& sum) {
  const std::uint64_t number = whole(amount.of(sum));
  return amount.is_bytes ? size_text(number) : count_text(number);
}

/// A row: a function, or a path.
struct Row {
  std::string name;
  MemorySum sum;
};

class Rows {
 public:
  Rows(const analysis::Parts& parts, const MemoryUse& use, const Options& options) : parts_(parts), use_(use) {
    const auto& nodes = use.tree.nodes();
    std::unordered_map<std::uint32_t, std::size_t> of_function;
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      const MemorySum& sum = use.sums[node];
      if (sum.allocations == 0 && sum.failed == 0 && sum.mapped_bytes == 0) continue;
      if (options.by == "path") {
        rows_.push_back({path(node), sum});
        continue;
      }
      const auto [at, fresh] = of_function.try_emplace(nodes[node].function, rows_.size());
      if (fresh) rows_.push_back({std::string(name(node)), {}});
      rows_[at->second].sum += sum;
    }
    const Amount& by =
        *std::find_if(std::begin(kAmounts), std::end(kAmounts), [&](const Amount& a) { return options.sort == a.key; });
    std::stable_sort(rows_.begin(), rows_.end(),
                     [&](const Row& a, const Row& b) { return by.of(a.sum) > by.of(b.sum); });
    all_ = rows_.size();
    if (options.limit != 0 && rows_.size() > options.limit) rows_.resize(options.limit);
  }
  const std::vector<Row>& rows() const { return rows_; }
  std::size_t left_out() const { return all_ - rows_.size(); }

 private:
  std::string_view name(std::uint32_t node) const {
    const std::uint32_t function = use_.tree.nodes()[node].function;
    if (node == 0) return "(in no traced call)";
    if (function == query::FlameTree::kOther) return "(more paths than can be told apart)";
    return parts_.functions().functions()[function].name;
  }
  std::string path(std::uint32_t node) const {
    if (node == 0) return std::string(name(0));
    std::vector<std::string> names;
    for (; node != 0; node = use_.tree.nodes()[node].parent) names.emplace_back(name(node));
    std::string text;
    for (const std::string& each : analysis::folded(std::move(names))) text += (text.empty() ? "" : " < ") + each;
    return text;
  }

  const analysis::Parts& parts_;
  const MemoryUse& use_;
  std::vector<Row> rows_;
  std::size_t all_ = 0;
};

/// How far an estimate may be off: 95 of 100 are within.
double margin(double variance) { return 1.96 * std::sqrt(variance); }

std::string estimate_text(double bytes, double variance, const MemoryUse& use) {
  std::string text = size_text(whole(bytes));
  if (use.mean != 0) text += " +- " + size_text(whole(margin(variance)));
  return text;
}

/// The head: what there is in all, and what is not known.
std::string head_text(const reader::Trace& trace, const MemoryUse& use, const std::string& call) {
  const MemorySum& all = use.all;
  const std::uint64_t start = analysis::first_ticks(trace);
  std::string text =
      fmt::format("{}{}: {} of {}; at most {} at once, after {}; ", printable(trace.name()),
                  call.empty() ? "" : ", call " + printable(call), plural(whole(all.allocations), "allocation"),
                  estimate_text(all.bytes, all.bytes_variance, use), size_text(whole(all.peak_bytes)),
                  duration_text(trace.clock().to_ns(use.peak_ticks > start ? use.peak_ticks - start : 0)));
  text += all.living == 0 ? std::string("nothing")
                          : fmt::format("{} in {}", estimate_text(all.living_bytes, all.living_variance, use),
                                        plural(whole(all.living), "allocation"));
  text += !call.empty()                  ? " living at its end"
          : trace.processes().size() > 1 ? " living at the ends of its processes"
                                         : " living at the end";
  if (use.mean != 0)
    text += fmt::format("; estimates of one in {}, by {}", size_text(use.mean), plural(use.records, "record"));
  if (all.failed >= 1) text += fmt::format("; {} failed", count_text(whole(all.failed)));
  if (all.mapped_bytes > 0)
    text += fmt::format("; mapped beside that: {}, {} of it at the end", size_text(whole(all.mapped_bytes)),
                        size_text(whole(all.mapped_living_bytes)));
  return text;
}

/// Empty: everything is known.
std::string unknown_text(const reader::Trace& trace, const MemoryUse& use) {
  if (use.not_known == 0) return {};
  const std::uint64_t start = analysis::first_ticks(trace);
  const std::uint64_t from = std::min(use.known_from, analysis::last_ticks(trace));
  return fmt::format(
      "{} of before {} may have been freed unseen, as older events of some threads are overwritten or tracing was "
      "switched off: they are not counted as living, nor at the peak. More memory keeps more: karst run --memory",
      plural(use.not_known, "allocation"), duration_text(trace.clock().to_ns(from > start ? from - start : 0)));
}

Status print_text(const reader::Trace& trace, const MemoryUse& use, const Rows& rows, const Options& options,
                  Screen& screen) {
  std::vector<Column> columns;
  for (const Amount& amount : kAmounts)
    columns.push_back({amount.key, amount.title, false, amount.narrow || options.sort == amount.key,
                       options.sort == amount.key ? 0 : amount.rank, amount.is_bytes ? 10UL : 11UL});
  columns.push_back({options.by, options.by});
  Table table(std::move(columns), options.by == "path" ? Shorten::kEnd : Shorten::kName);
  if (!options.columns.empty())
    if (Status chosen = table.choose(options.columns); !chosen) return chosen;
  screen.output().append(wrap(head_text(trace, use, options.call), screen.width(), 2) + "\n");
  for (const Row& row : rows.rows()) {
    std::vector<std::string> cells;
    for (const Amount& amount : kAmounts) cells.push_back(amount_text(amount, row.sum));
    cells.push_back(printable(row.name));
    table.add(std::move(cells));
  }
  table.print(screen);
  if (rows.left_out() != 0)
    screen.output().append(fmt::format("({} more; --limit 0: all)\n", plural(rows.left_out(), options.by.c_str())));
  if (const std::string text = unknown_text(trace, use); !text.empty())
    screen.output().append(wrap(text, screen.width(), 2) + "\n");
  return Unit{};
}

void print_csv(const Rows& rows, const Options& options, Output& output) {
  output.append(options.by +
                ",allocations,bytes,bytes_margin,living,living_bytes,living_margin,peak_bytes,short_lived,failed,"
                "mapped_bytes,living_mapped_bytes\n");
  for (const Row& row : rows.rows()) {
    const MemorySum& s = row.sum;
    output.append(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(row.name), whole(s.allocations),
                              whole(s.bytes), whole(margin(s.bytes_variance)), whole(s.living), whole(s.living_bytes),
                              whole(margin(s.living_variance)), whole(s.peak_bytes), whole(s.short_lived),
                              whole(s.failed), whole(s.mapped_bytes), whole(s.mapped_living_bytes)));
  }
}

void write_sum(Json& json, const MemorySum& s) {
  json.field("allocations", whole(s.allocations)).field("bytes", whole(s.bytes));
  json.field("bytes_margin", whole(margin(s.bytes_variance))).field("living", whole(s.living));
  json.field("living_bytes", whole(s.living_bytes)).field("living_margin", whole(margin(s.living_variance)));
  json.field("peak_bytes", whole(s.peak_bytes)).field("short_lived", whole(s.short_lived));
  json.field("failed", whole(s.failed)).field("mapped_bytes", whole(s.mapped_bytes));
  json.field("living_mapped_bytes", whole(s.mapped_living_bytes));
}

void print_json(const reader::Trace& trace, const MemoryUse& use, const Rows& rows, const Options& options,
                Output& output) {
  const std::uint64_t start = analysis::first_ticks(trace);
  const auto time = [&](std::uint64_t ticks) { return trace.clock().to_ns(ticks > start ? ticks - start : 0); };
  Json json;
  json.open('{').field("trace", trace.name()).field("sampled_bytes", use.mean).field("records", use.records);
  json.field("peak_ns", time(use.peak_ticks)).field("unknown_frees", use.unknown_frees);
  json.field("not_known", use.not_known).key("all").open('{');
  write_sum(json, use.all);
  json.close('}').key("rows").open('[');
  for (const Row& row : rows.rows()) {
    json.line().open('{').field(options.by.c_str(), row.name);
    write_sum(json, row.sum);
    json.close('}').flush(output);
  }
  json.close(']').close('}').flush(output);
  output.append("\n");
}

int memory(const Options& options) {
  const auto call = options.call.empty() ? Result<CallName>(CallName{}) : parse_call_name(options.call);
  if (!call) return usage_error("--call: " + call.error().message, "memory");
  auto input = open_input(options.input);
  if (!input) return fail(input.error());
  const reader::Trace& trace = (*input)->trace;
  analysis::Parts parts(trace);
  const auto use = memory_use(**input, parts, options.call.empty() ? nullptr : &*call);
  if (!use) return fail(use.error());
  Options shown = options;
  if (options.format != "text") shown.limit = 0;
  const Rows rows(parts, *use, shown);
  if (options.format == "text") {
    Screen screen(options.text);
    say_partial(screen, **input);
    if (Status printed = print_text(trace, *use, rows, options, screen); !printed) return fail(printed.error());
    return screen.finish(&trace);
  }
  return print_data(
      options.format, **input, [&](Output& output) { print_json(trace, *use, rows, options, output); },
      [&](Output& output) { print_csv(rows, options, output); });
}

}  // namespace

void register_memory(Command app, int& status) {
  auto options = std::make_shared<Options>();
  Command command = app.add_subcommand("memory", "Show who took memory, how much, and what was not given back");
  command.footer(kFooter);
  add_file_option(command, options->input);
  add_format_options(command, options->format, {"text", "csv", "json"});
  command.add_option("--by", options->by, "A row for each function (the default), or for each path of calls")
      .check(one_of({"function", "path"}))
      .type_name("function|path");
  std::vector<std::string> keys;
  std::string words;
  for (const Amount& amount : kAmounts) {
    keys.emplace_back(amount.key);
    words += (words.empty() ? "" : "|") + keys.back();
  }
  command.add_option("--sort", options->sort, "Most of this first (default: bytes)")
      .check(one_of(keys))
      .type_name(words);
  command.add_option("--columns", options->columns, "Show these columns, in this order: bytes,living,failed")
      .type_name("LIST");
  command.add_option("-n,--limit", options->limit, "Show only the first N (text: 20; 0: all)").type_name("N");
  command.add_option("--call", options->call, "Take only what this call took, and what it called")
      .type_name("TID@TIME");
  add_selection_options(command, options->input, "Take only what functions took themselves whose name matches");
  add_text_options(command, options->text);
  command.callback([options, &status] { status = memory(*options); });
}

}  // namespace karst::cli
