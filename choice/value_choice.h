// SPDX-License-Identifier: MIT
// Which calls' arguments and results are noted: what --args and --returns say.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "choice/function_filter.h"
#include "reader/model.h"
#include "symbols/resolve.h"
#include "symbols/values.h"

namespace karst::choice {

/// Of one module's functions.
struct ValuesOfModule {
  struct Function {
    const reader::Function* function;
    symbols::FunctionValues values;
  };
  std::size_t meant = 0;            ///< functions that a pattern matches
  std::vector<Function> functions;  ///< of them, those whose values can be noted; and parts of coroutines
  std::string problem;              ///< why no pattern's values can be noted; else empty
  std::size_t late = 0;             ///< of those that are meant: functions whose arguments cannot be noted
  /// What to say of these; empty: there are none.
  std::string problem_of_late(const std::string& module) const;
};

/// Immutable once made.
class ValueChoice {
 public:
  /// Nothing is noted.
  ValueChoice() = default;
  /// `REGEX[:N,...]` each, N: of the arguments, from 1 on.
  ValueChoice(const std::vector<std::string>& arguments, const std::vector<std::string>& returned);

  /// Notes also which coroutine each resumption of one is of (base/plain_name.h).
  void note_coroutines() { coroutines_ = true; }

  bool any() const { return has_patterns() || coroutines_; }
  bool has_patterns() const { return !arguments_.empty() || !returned_.empty(); }
  /// Whether a pattern matches the function of this name.
  bool names(const std::string& name) const { return has_patterns() && wish_of(name).has_value(); }
  /// What is wanted of these functions, which are of this module and have names.
  ValuesOfModule of_module(const reader::Module& module, const std::vector<const reader::Function*>& functions,
                           const symbols::ResolveOptions& resolve) const;

 private:
  struct Rule {
    FunctionFilter functions;
    std::vector<std::uint32_t> only;
  };
  /// None: nothing is noted of this function.
  std::optional<symbols::ValueWish> wish_of(const std::string& name) const;

  std::vector<Rule> arguments_;
  std::vector<Rule> returned_;
  bool coroutines_ = false;
};

}  // namespace karst::choice
