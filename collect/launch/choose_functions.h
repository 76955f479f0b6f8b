// SPDX-License-Identifier: MIT
// Applies a choice of functions (choice/function_choice.h) to processes that run, by their arenas.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "choice/function_choice.h"
#include "collect/arena/view.h"
#include "collect/arena/watch.h"
#include "reader/model.h"
#include "symbols/resolve.h"

namespace karst::collect {

/// Applies a choice to processes' functions. Remembers modules' lists, not their symbols. One thread.
class FunctionChooser {
 public:
  /// `choice` and `watch` must outlive it.
  FunctionChooser(const choice::FunctionChoice& choice, const symbols::ResolveOptions& resolve,
                  const WatchOptions& watch);
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
  std::vector<Named> find_and_keep(const ArenaView& arena, const choice::FunctionFilter& filter, std::uint32_t first,
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
  std::unique_ptr<Carried> made_ready(const std::string& path, choice::ListChoice lists);
  const Carried& carried_by(const std::string& path) const;
  bool concerns(const reader::Module& module) const;
  bool keeps(const reader::Function& function, const Carried& carried) const;
  void leave_out_small(ArenaWriter& writer, const reader::Module& module,
                       const std::vector<const reader::Function*>& kept, std::uint32_t least);
  void note_values(ArenaWriter& writer, const reader::Module& module, const std::vector<const reader::Function*>& kept,
                   bool at_start);
  void turn_off(ArenaWriter& writer, const reader::Function& function);
  void report_once(const std::string& message);

  const choice::FunctionChoice& choice_;
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
