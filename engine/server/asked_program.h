// SPDX-License-Identifier: MIT
// A program that is run for one answer: what it writes is the answer. SQL is answered so, as it may take any time and
// memory: nothing but the end of a process stops all of it.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/columns.h"

namespace karst::engine {

struct AskedLimits {
  std::chrono::milliseconds time{300'000};    ///< by the clock on the wall
  std::size_t bytes = std::size_t{64} << 20;  ///< of the answer
};

/// Starts `words`, of which the first is the program's path, with `text` as its standard input and no other output
/// than its answer. It is killed when `work` is stopped, when a limit is reached, and as its answer ends. Any thread
/// may call it. Error: it gave no answer, and why.
Result<std::string> answer_of_program(const std::vector<std::string>& words, std::string_view text, const Work* work,
                                      const AskedLimits& limits);

}  // namespace karst::engine
