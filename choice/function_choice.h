// SPDX-License-Identifier: MIT
// Which functions of a process are traced: the user's patterns and lists, and those that programs carry.
//
// What --not-functions matches is left out, and nothing brings it back. Else a function is traced if --functions,
// --no-trace, --only and --min-instructions all agree, or if its source says KARST_ALWAYS.
//
// A module's carried lists hold for its own functions. Their no-trace globs add to the user's; their only globs and
// min-instructions hold unless the user gives such.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "choice/function_filter.h"
#include "choice/function_lists.h"
#include "choice/library_choice.h"
#include "choice/value_choice.h"

namespace karst::choice {

/// The user's part. Immutable once made.
class FunctionChoice {
 public:
  /// Everything is traced but what programs' own lists leave out.
  FunctionChoice() = default;
  /// `filter`: --functions and --not-functions. `use_carried`: false ignores what programs carry.
  static Result<FunctionChoice> make(FunctionFilter filter, ListChoice lists, bool use_carried);
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

  const FunctionFilter& filter() const { return filter_; }
  const ListChoice& lists() const { return lists_; }
  bool uses_carried() const { return use_carried_; }
  bool has_kept() const { return has_kept_; }
  bool is_kept(const std::string& name) const { return (has_kept_ && kept_.keeps(name)) || values_.names(name); }
  const ValueChoice& values() const { return values_; }
  const GlobSet& no_trace() const { return no_trace_; }
  const GlobSet& only() const { return only_; }

 private:
  FunctionFilter filter_;
  ListChoice lists_;
  GlobSet no_trace_;
  GlobSet only_;
  bool use_carried_ = true;
  FunctionFilter kept_;
  bool has_kept_ = false;
  std::vector<LibraryChoice> libraries_;
  ValueChoice values_;
};

}  // namespace karst::choice
