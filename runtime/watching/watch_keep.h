// SPDX-License-Identifier: MIT
// Keeping the calls that were noted (watching/watch.h): the maintenance process copies the blocks of all threads that
// lie in a call's time, with its margin, out of the ring into memory of the arena that is not recycled, and lets go of
// those of calls that longer ones have replaced.
//
// Where blocks begin is in an index (recording/block_begins.h): to look at all headers takes longer than to copy what
// is wanted. A block is copied once, however many calls it belongs to.
#pragma once
#include <cstdint>

#include "runtime/maintenance/control.h"

namespace karst::runtime {

/// When the first function is watched. False when memory cannot be had.
bool prepare_keeping();
/// In a forked child: nothing is kept yet.
bool renew_keeping();
/// Makes slots and their moments real. Any context.
bool reserve_slots(std::uint32_t first, std::uint32_t count);

/// A task of the maintenance process.
std::uint64_t keep_moments(const Moment& now);

}  // namespace karst::runtime
