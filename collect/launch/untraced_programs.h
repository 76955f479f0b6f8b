// Programs that traced processes start and that cannot be traced: one line for each.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "reader/model.h"

namespace karst::collect {

class UntracedPrograms {
 public:
  /// A program is about to be started: `descriptor` is of its file. `no_new_privileges`: setuid bits have no effect.
  /// What cannot be opened or named from here is passed over, and at most 100 programs are told of.
  void see(int descriptor, bool no_new_privileges);

  /// In the order of their starting; a reason goes behind its program, in one line.
  std::vector<reader::UntracedProgram>& programs() { return programs_; }

 private:
  void see_file(const std::string& path, bool no_new_privileges);

  std::set<std::string> seen_;
  std::vector<reader::UntracedProgram> programs_;
};

}  // namespace karst::collect
