// SPDX-License-Identifier: MIT
// Programs that traced processes start and that cannot be traced: one line for each.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "format/session.h"
#include "reader/model.h"

namespace karst::collect {

class UntracedPrograms {
 public:
  /// A program is about to be started: `descriptor` is of its file. `no_new_privileges`: setuid bits have no effect.
  /// `how`: what the process that starts it says of it, which may be anything. What cannot be opened or named from here
  /// is passed over, and at most 100 programs are told of.
  void see(int descriptor, bool no_new_privileges, format::StartsHow how);

  /// In the order of their starting; a reason goes behind its program, in one line.
  std::vector<reader::UntracedProgram>& programs() { return programs_; }

 private:
  void see_file(const std::string& path, bool no_new_privileges);
  bool is_new(const std::string& path);

  std::set<std::string> seen_;  ///< paths; those that were told of as their starters say, with that behind
  std::vector<reader::UntracedProgram> programs_;
};

}  // namespace karst::collect
