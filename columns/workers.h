// SPDX-License-Identifier: MIT
// Who does the work of a question: the engine has no threads of its own, and is lent some.
#pragma once
#include <cstddef>
#include <functional>

namespace karst::columns {

/// Does pieces of work that do not touch each other. The default does one after the other.
struct Workers {
  using Piece = std::function<void(std::size_t item, std::size_t worker)>;
  std::size_t count = 1;
  /// Calls `piece` once for each item below `items`, and returns when all are done. No two run at once with the same
  /// `worker`, which is below `count`: so each worker may have sums of its own, without a lock.
  void (*run)(std::size_t items, const Piece& piece) = [](std::size_t items, const Piece& piece) {
    for (std::size_t item = 0; item < items; ++item) piece(item, 0);
  };
};

}  // namespace karst::columns
