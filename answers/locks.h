// SPDX-License-Identifier: MIT
// The relations of locks (analysis/locks.h, analysis/holds.h): locks, waits for them, holds of them, and rings of locks
// that threads can wait in for ever.
#pragma once
#include <string_view>
#include <vector>

#include "analysis/holds.h"
#include "analysis/locks.h"
#include "answers/relation.h"

namespace karst::answers {

/// What rows of locks are looked up in. Outlives the rows.
struct LockContext {
  const reader::Trace& trace;
  const analysis::LockNames& names;
  bool holds_known;
  Times times;
};

struct LockWaitRow {
  const LockContext& in;
  const analysis::LockWait& of;
};
struct LockHoldRow {
  const LockContext& in;
  const analysis::LockHold& of;
};
struct LockRow {
  const LockContext& in;
  const analysis::Lock& of;
  const analysis::LockUse& use;  ///< nothing where holds are not known
};
struct LockPairRow {
  const LockRow& lock;
  const analysis::LockPair& of;
};
struct ConvoyRow {
  const LockContext& in;
  const analysis::Convoy& of;
};

/// Locks that were taken in a ring, each while the one before it was held; two of them: in both orders.
struct LockRingRow {
  const LockContext& in;
  const std::vector<analysis::LockIdentity>& locks;  ///< LockHolds::locks
  std::vector<std::uint32_t> of;
  std::vector<const analysis::LockOrder*> orders;  ///< by lock: it was held while the next one was taken
};
struct LockOrderRow {
  const LockContext& in;
  const analysis::LockIdentity& held;
  const analysis::LockIdentity& taken;
  const analysis::LockOrder& of;
};

const Relation& lock_waits();
const Relation& lock_holds();
const Relation& locks();
const Relation& lock_pairs();
const Relation& convoys();
const Relation& lock_rings();
const Relation& lock_orders();

/// "released by another thread".
std::string_view hold_end_word(analysis::HoldEnd end);

}  // namespace karst::answers
