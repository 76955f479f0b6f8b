// SPDX-License-Identifier: MIT
// What holds of locks say of deadlocks: pairs of locks that were taken in both orders, rings of more locks, and locks
// that were never released.
#pragma once
#include "analysis/holds.h"
#include "answers/locks.h"
#include "base/json.h"
#include "cli/commands/lock_texts.h"

namespace karst::cli {

class LockDangers : public LockTexts {
 public:
  LockDangers(const Input& input, const analysis::LockHolds& holds) : LockTexts(input), holds_(holds) {}

  void print(Screen& screen) const;
  /// As fields of the object that is open.
  void write(Json& json, const answers::LockContext& context) const;

 private:
  /// Whether it is of functions that are asked for.
  bool concerns(const analysis::LockOrder& order) const;
  bool concerns(const analysis::Inversion& inversion) const;
  bool concerns(const analysis::LockRing& ring) const;
  std::string called_by_id(std::uint32_t id) const;
  void print_order(Screen& screen, const analysis::LockOrder& order, std::uint32_t first, std::uint32_t second) const;
  bool print_inversions(Screen& screen) const;
  bool print_rings(Screen& screen) const;
  void print_kept(Screen& screen) const;

  const analysis::LockHolds& holds_;
};

}  // namespace karst::cli
