// Which functions of a process are traced: the user's patterns and lists, and those that programs carry.
//
// What --not-functions matches is left out, and nothing brings it back. Else a function is traced if --functions,
// --no-trace, --only and --min-instructions all agree, or if its source says KARST_ALWAYS.
//
// A module's carried lists hold for its own functions. Their no-trace globs add to the user's; their only globs and
// min-instructions hold unless the user gives such.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/arena/view.h"
#include "collect/arena/watch.h"
#include "collect/launch/library_choice.h"
#include "collect/launch/value_choice.h"
#include "reader/model.h"
#include "symbols/function_filter.h"
#include "symbols/function_lists.h"
#include "symbols/resolve.h"

namespace karst::collect {

/// The user's part. Immutable once made.
class FunctionChoice {
 public:
  /// Everything is traced but what programs' own lists leave out.
  FunctionChoice() = default;
  /// `filter`: --functions and --not-functions. `use_carried`: false ignores what programs carry.
  static Result<FunctionChoice> make(symbols::FunctionFilter filter, symbols::ListChoice lists, bool use_carried);
  /// What a budget leaves on: functions that one of the patterns matches, and those whose values are noted.
  void keep(const std::vector<std::string>& patterns);

  /// What is noted of functions' calls.
  void note(ValueChoice values) { values_ = std::move(values); }
  void note_coroutines() { values_.note_coroutines(); }

  /// Functions that `--library` names are left on by a budget, and whatever their size.
  void name_libraries(std::vector<LibraryChoice> libraries) { libraries_ = std::move(libraries); }
  /// Of the library of this path all functions were named that were patched.
  bool names_all_of(const std::string& path) const {
    const NamedOfLibrary named = named_of(libraries_, path);
    return !named.whole && !named.globs.empty();
  }

  const symbols::FunctionFilter& filter() const { return filter_; }
  const symbols::ListChoice& lists() const { return lists_; }
  bool uses_carried() const { return use_carried_; }
  bool has_kept() const { return has_kept_; }
  bool is_kept(const std::string& name) const { return (has_kept_ && kept_.keeps(name)) || values_.names(name); }
  const ValueChoice& values() const { return values_; }
  const symbols::GlobSet& no_trace() const { return no_trace_; }
  const symbols::GlobSet& only() const { return only_; }

 private:
  symbols::FunctionFilter filter_;
  symbols::ListChoice lists_;
  symbols::GlobSet no_trace_;
  symbols::GlobSet only_;
  bool use_carried_ = true;
  symbols::FunctionFilter kept_;
  bool has_kept_ = false;
  std::vector<LibraryChoice> libraries_;
  ValueChoice values_;
};

/// Applies a choice to processes' functions. Remembers modules' lists, not their symbols. One thread.
class FunctionChooser {
 public:
  /// `choice` and `watch` must outlive it.
  FunctionChooser(const FunctionChoice& choice, const symbols::ResolveOptions& resolve, const WatchOptions& watch);
  ~FunctionChooser();

  /// Turns off what is not chosen, and enters what is to be watched, among `count` functions from `first` on; what is
  /// outside of the arena's table is passed over. The process must be waiting. False if there is nothing to choose in
  /// any of their modules.
  bool choose(const ArenaView& arena, std::uint32_t first, std::uint32_t count);

  /// Functions among these that have code, and whose names `filter` keeps. A budget leaves them on from now on.
  struct Named {
    std::uint32_t id;
    std::string name;
  };
  std::vector<Named> find_and_keep(const ArenaView& arena, const symbols::FunctionFilter& filter, std::uint32_t first,
                                   std::uint32_t count);

  std::uint64_t functions() const { return functions_; }                 ///< that were looked at
  std::uint64_t off() const { return off_; }                             ///< of them, left out
  const std::set<std::string>& names_off() const { return names_off_; }  ///< of those, if patterns left out all
  std::size_t watched() const { return watched_; }                       ///< functions, once for each rule
  std::size_t meant_for_values() const { return meant_for_values_; }  ///< functions that a pattern for values matches
  /// Paths of those that were built for tracing.
  const std::set<std::string>& libraries() const { return libraries_; }
  /// What could not be applied, once for each module.
  std::vector<reader::Problem>& problems() { return problems_; }

 private:
  struct Carried;
  void read_carried(const reader::Process& process);
  std::unique_ptr<Carried> made_ready(const std::string& path, symbols::ListChoice lists);
  const Carried& carried_by(const std::string& path) const;
  bool concerns(const reader::Module& module) const;
  bool keeps(const reader::Function& function, const Carried& carried) const;
  void leave_out_small(ArenaWriter& writer, const reader::Module& module,
                       const std::vector<const reader::Function*>& kept, std::uint32_t least);
  void note_values(ArenaWriter& writer, const reader::Module& module, const std::vector<const reader::Function*>& kept,
                   bool at_start);
  void turn_off(ArenaWriter& writer, const reader::Function& function);
  void report_once(const std::string& message);

  const FunctionChoice& choice_;
  symbols::ResolveOptions resolve_;  ///< with the rights of the process at hand
  const WatchOptions& watch_;
  std::vector<ActiveRule> adopted_;  ///< of the process at hand
  std::size_t watched_ = 0;
  std::map<std::string, std::unique_ptr<Carried>> carried_;
  std::uint64_t functions_ = 0;
  std::uint64_t off_ = 0;
  bool keeps_some_ = false;
  std::set<std::string> names_off_;
  std::size_t meant_for_values_ = 0;
  std::set<std::string> libraries_;
  std::vector<reader::Problem> problems_;
};

}  // namespace karst::collect
