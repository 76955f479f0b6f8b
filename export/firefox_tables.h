// SPDX-License-Identifier: MIT
// What all threads of a Firefox profile share: texts, functions, frames and stacks, each a table by columns.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/function_list.h"
#include "base/json.h"
#include "base/output.h"
#include "columns/flame.h"

namespace karst::exporting::firefox {

/// Milliseconds with six decimals: nanoseconds, exactly.
char* put_ms(char* to, std::uint64_t ns);  ///< returns its end; 25 characters at most
std::string ms(std::uint64_t ns);

/// Texts under their places in `stringArray`.
class Texts {
 public:
  std::size_t of(std::string_view text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<std::string> texts_;
};

/// The fields of `shared`. A function has one frame. A stack is a node of `stacks` other than the root, whose number is
/// one less than the node's.
void write_tables(Json& json, Output& output, const analysis::FunctionList& functions, const columns::FlameTree& stacks,
                  Texts& texts);

}  // namespace karst::exporting::firefox
