// SPDX-License-Identifier: MIT
#include "collect/launch/choose_functions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "binary/instructions.h"
#include "format/note.h"
#include "format/trace.h"

namespace karst::collect {

using choice::GlobSet;
using choice::ListChoice;

namespace {
bool has_no_code(const reader::Module& module) { return module.has_no_code(); }
}  // namespace

/// What one module carries.
struct FunctionChooser::Carried {
  ListChoice lists;
  GlobSet no_trace;
  GlobSet only;
};

FunctionChooser::FunctionChooser(const choice::FunctionChoice& choice, const symbols::ResolveOptions& resolve,
                                 const WatchOptions& watch)
    : choice_(choice), resolve_(resolve), watch_(watch) {}
FunctionChooser::~FunctionChooser() = default;

void FunctionChooser::report_once(const std::string& message) {
  const auto same = [&](const reader::Problem& p) { return p.message == message; };
  if (std::none_of(problems_.begin(), problems_.end(), same)) problems_.push_back({message, 1});
}

/// All modules of a process in one sandbox: the process waits.
void FunctionChooser::read_carried(const reader::Process& process) {
  std::vector<std::string> paths;
  for (const reader::Module& module : process.modules)
    if (carried_.try_emplace(module.path).second && choice_.uses_carried() && module.path != format::kGeneratedCode &&
        !has_no_code(module))
      paths.push_back(module.path);
  if (!paths.empty()) {
    std::vector<ListChoice> lists = choice::carried_lists(paths, resolve_.as);
    for (std::size_t i = 0; i < paths.size(); ++i) carried_[paths[i]] = made_ready(paths[i], std::move(lists[i]));
  }
  for (auto& [path, carried] : carried_)
    if (carried == nullptr) carried = std::make_unique<Carried>();
}

std::unique_ptr<FunctionChooser::Carried> FunctionChooser::made_ready(const std::string& path, ListChoice lists) {
  auto carried = std::make_unique<Carried>();
  carried->lists = std::move(lists);
  auto no_trace = GlobSet::compile(carried->lists.no_trace);
  auto only = GlobSet::compile(carried->lists.only);
  if (no_trace && only) {
    carried->no_trace = std::move(*no_trace);
    carried->only = std::move(*only);
  } else {
    report_once("the lists of functions that " + path +
                " carries are not used: " + (no_trace ? only : no_trace).error().message);
  }
  return carried;
}

const FunctionChooser::Carried& FunctionChooser::carried_by(const std::string& path) const {
  return *carried_.at(path);
}

bool FunctionChooser::concerns(const reader::Module& module) const {
  return !adopted_.empty() || !watch_.rules.empty() || choice_.has_kept() || choice_.values().any() ||
         choice_.names_all_of(module.path) || !choice_.filter().keeps_all() || !choice_.lists().empty() ||
         !carried_by(module.path).lists.empty();
}

bool FunctionChooser::keeps(const reader::Function& f, const Carried& carried) const {
  if (choice_.filter().excludes(f.name)) return false;
  if (f.always) return true;
  if (!choice_.filter().keeps(f.name)) return false;
  if (choice_.no_trace().matches(f) || carried.no_trace.matches(f)) return false;
  const GlobSet& only = choice_.only().empty() ? carried.only : choice_.only();
  return only.empty() || only.matches(f);
}

void FunctionChooser::turn_off(ArenaWriter& writer, const reader::Function& function) {
  writer.choose(function.id, false);
  if (!function.tail_exit) ++off_;
}

namespace {
/// Behind the last of `count` functions from `first` on that are in the arena's table.
std::uint32_t end_of(const ArenaView& arena, std::uint32_t first, std::uint32_t count) {
  const std::uint32_t known = arena.function_count();
  return first == 0 || first > known ? 0 : first + std::min(count, known - first + 1);
}

/// The process with `count` of its functions from `first` on; those that are outside of the arena's table are none.
reader::Process part_of(const ArenaView& arena, std::uint32_t first, std::uint32_t count) {
  reader::Process process = arena.process();
  const std::uint32_t end = end_of(arena, first, count);
  std::erase_if(process.functions, [=](const reader::Function& f) { return f.id < first || f.id >= end; });
  return process;
}

/// As many as part_of() has, without those that are tail calls' exits.
std::uint64_t functions_in(const ArenaView& arena, std::uint32_t first, std::uint32_t count) {
  const std::vector<std::uint32_t> flags = arena.all_function_flags();
  const std::size_t end = std::min<std::size_t>(end_of(arena, first, count), flags.size());
  std::uint64_t found = 0;
  for (std::size_t id = first; id < end; ++id) found += (flags[id] & format::kArenaFunctionTailExit) == 0 ? 1 : 0;
  return found;
}
}  // namespace

std::vector<FunctionChooser::Named> FunctionChooser::find_and_keep(const ArenaView& arena,
                                                                   const choice::FunctionFilter& filter,
                                                                   std::uint32_t first, std::uint32_t count) {
  reader::Process process = part_of(arena, first, count);
  std::erase_if(process.functions, [&](const reader::Function& f) {
    return f.tail_exit || f.module >= process.modules.size() || has_no_code(process.modules[f.module]);
  });
  resolve_.as = arena.owner();
  symbols::resolve(process, resolve_);
  std::vector<Named> found;
  for (const reader::Function& f : process.functions)
    if (filter.keeps(f.name)) found.push_back({f.id, f.name});
  if (auto writer = ArenaWriter::of(arena))
    for (const Named& f : found) writer->keep(f.id);
  return found;
}

bool FunctionChooser::choose(const ArenaView& arena, std::uint32_t first, std::uint32_t count) {
  // What `karst on` has asked for since holds for libraries that come later, too.
  adopted_ = active_rules(arena);
  reader::Process process = arena.process_without_functions();
  functions_ += functions_in(arena, first, count);
  resolve_.as = arena.owner();
  for (const reader::Module& module : process.modules)
    if (module.path.starts_with('/') && module.path != process.executable) libraries_.insert(module.path);
  read_carried(process);
  std::vector<bool> concerned(process.modules.size());
  std::transform(process.modules.begin(), process.modules.end(), concerned.begin(),
                 [this](const reader::Module& m) { return concerns(m); });
  // The program waits, and may have a hundred thousand functions: they are read only where some are chosen.
  if (std::none_of(concerned.begin(), concerned.end(), [](bool is) { return is; })) return false;
  process.functions = part_of(arena, first, count).functions;
  std::erase_if(process.functions,
                [&](const reader::Function& f) { return f.module >= concerned.size() || !concerned[f.module]; });
  if (process.functions.empty()) return false;
  auto writer = ArenaWriter::of(arena);
  if (!writer) {
    report_once("no function is left out, and none watched: " + writer.error().message);
    return false;
  }
  // Notes, and what is interpreted, have their names, and a thread of the program waits. What could not be found is
  // said when the trace is written.
  const bool has_code = std::any_of(process.functions.begin(), process.functions.end(),
                                    [](const reader::Function& f) { return f.has_code(); });
  if (has_code) symbols::resolve(process, resolve_);

  std::vector<std::vector<const reader::Function*>> kept(process.modules.size());
  std::vector<bool> has_functions(process.modules.size());
  std::vector<bool> has_files(process.modules.size());
  std::vector<bool> named(process.modules.size());
  std::transform(process.modules.begin(), process.modules.end(), named.begin(),
                 [this](const reader::Module& m) { return choice_.names_all_of(m.path); });
  const bool by_names = !choice_.filter().only().empty();
  for (const reader::Function& f : process.functions) {
    has_functions[f.module] = true;
    if (!f.file.empty()) has_files[f.module] = true;
    if (choice_.is_kept(f.name) || named[f.module]) writer->keep(f.id);
    if (keeps(f, carried_by(process.modules[f.module].path))) {
      kept[f.module].push_back(&f);
      keeps_some_ = true;
    } else {
      turn_off(*writer, f);
      if (by_names && !keeps_some_) names_off_.insert(f.name);
    }
  }
  if (keeps_some_) names_off_.clear();
  for (std::size_t m = 0; m < process.modules.size(); ++m) {
    if (!has_functions[m]) continue;
    const reader::Module& module = process.modules[m];
    const Carried& carried = carried_by(module.path);
    const bool by_path = choice_.no_trace().has_paths() || choice_.only().has_paths() || carried.no_trace.has_paths() ||
                         carried.only.has_paths();
    if (by_path && !has_files[m] && !has_no_code(module))
      report_once("globs of source paths match nothing in " + module.path +
                  ", which has no debug information: compile it with -g");
    const auto least =
        choice_.lists().min_instructions ? choice_.lists().min_instructions : carried.lists.min_instructions;
    if (least && *least != 0 && !named[m] && !has_no_code(module)) leave_out_small(*writer, module, kept[m], *least);
    std::size_t refused = 0;
    const std::vector<std::uint32_t> flags = arena.all_function_flags();
    std::erase_if(kept[m], [&](const reader::Function* f) {
      return f->id >= flags.size() || (flags[f->id] & format::kArenaFunctionOn) == 0;
    });
    if (choice_.values().any()) note_values(*writer, module, kept[m], first == 1);
    watched_ += watch_functions(*writer, watch_, kept[m], refused);
    for (const ActiveRule& rule : adopted_) {
      std::vector<std::uint32_t> ids;
      for (const reader::Function* f : kept[m])
        if (!f->tail_exit && rule.functions.keeps(f->name)) ids.push_back(f->id);
      writer->add_watches(rule.number, ids);
    }
    if (refused != 0)
      report_once(std::to_string(refused) + " functions of " + module.path +
                  " are not watched for slow calls: the process counts calls or forbids itself system calls "
                  "(prefault), or there are more than 64 rules or 65536 functions");
  }
  return true;
}

void FunctionChooser::note_values(ArenaWriter& writer, const reader::Module& module,
                                  const std::vector<const reader::Function*>& kept, bool at_start) {
  const std::string of = "of functions of " + module.path + " are noted: ";
  const choice::ValuesOfModule values = choice_.values().of_module(module, kept, resolve_);
  meant_for_values_ += values.meant;
  if (values.meant == 0 && (values.functions.empty() || !at_start)) return;
  if (!at_start)
    return report_once("no values " + of + "it was opened after the program had begun; 'karst on PID --args' can");
  if (!values.problem.empty()) report_once("no values " + of + values.problem);
  if (values.late != 0) report_once(values.problem_of_late(module.path));
  std::size_t refused = 0;
  for (const auto& [function, noted] : values.functions)
    if (!writer.note_values(function->id, noted)) ++refused;
  if (refused != 0)
    report_once("values of " + std::to_string(refused) + " functions of " + module.path +
                " are not noted: there are more than " + std::to_string(format::kMostValueSpecs) +
                " such functions, or the process counts calls");
}

void FunctionChooser::leave_out_small(ArenaWriter& writer, const reader::Module& module,
                                      const std::vector<const reader::Function*>& kept, std::uint32_t least) {
  if (kept.empty()) return;
  const auto loaded = resolve_.table(binary::ModuleFile(module));
  if (!loaded) {
    report_once("the functions of " + module.path + " are traced whatever their size: " + loaded.error().message);
    return;
  }
  const symbols::SymbolTable& table = **loaded;
  // Parts that the compiler moved away count as well: `f` and `f.cold`.
  std::unordered_map<std::string_view, std::size_t> cold;
  constexpr std::string_view kCold = ".cold";
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::string_view name = table.at(i).link_name;
    if (name.ends_with(kCold)) cold.emplace(name.substr(0, name.size() - kCold.size()), i);
  }
  struct Parts {
    const reader::Function* function;
    bool is_split;  // its second part is behind its first
  };
  std::vector<Parts> parts;
  std::vector<binary::CodeRange> ranges;
  for (const reader::Function* f : kept) {
    if (f->always) continue;
    const auto symbol = table.lookup(f->address - module.bias);
    if (!symbol) continue;
    ranges.push_back({symbol->begin, symbol->end});
    const auto part = cold.find(symbol->link_name);
    parts.push_back({f, part != cold.end()});
    if (part == cold.end()) continue;
    const auto other = table.at(part->second);
    ranges.push_back({other.begin, other.end});
  }
  const auto shapes = binary::shapes_of(module.path, ranges, resolve_.as);
  if (!shapes) {
    report_once("the functions of " + module.path + " are traced whatever their size: " + shapes.error().message);
    return;
  }
  std::size_t next = 0;
  for (const Parts& part : parts) {
    auto shape = (*shapes)[next++];
    const auto more = part.is_split ? (*shapes)[next++] : binary::CodeShape{};
    if (!shape || shape->instructions == 0 || !more) continue;  // not known: traced
    shape->instructions += more->instructions;
    shape->loops = shape->loops || more->loops;
    if (shape->instructions < least && !shape->loops) turn_off(writer, *part.function);
  }
}

}  // namespace karst::collect
