// SPDX-License-Identifier: MIT
// What names and lines were not found, as the one line that a command says of it. A program with a hundred stripped
// libraries has a hundred reasons; they differ in a path and a build-id, and hid what else was said.
#pragma once
#include <vector>

#include "reader/model.h"

namespace karst::symbols {

class MissingNames {
 public:
  /// ResolveResult::problems of a process. Processes of one program have the same.
  void add(std::vector<reader::Problem> problems);
  /// None or one: what concerns most functions, and how many more there are. `where`: which commands list them.
  std::vector<reader::Problem> folded(const char* where = "'karst info' lists") const;

 private:
  std::vector<reader::Problem> all_;
};

}  // namespace karst::symbols
