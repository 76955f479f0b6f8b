// SPDX-License-Identifier: MIT
// A thread's calls in pieces of bounded length, for whoever adds calls up: memory does not grow with the thread, and
// the columns of a piece stay in the processor's caches.
//
//   piece      one stretch of the thread's rows, in the order of all its rows. A call is *sent* in the piece in which
//              its end is known to lie; that is so for all rows below `end` but those in `open`
//   open       calls that lie around the first row of the next piece. They come again as its first rows, outermost
//              first, until the piece that they end in. Here they are the parents of other rows, and no more
//
//   rows of all      a b c d d d b d d
//   first piece      a b c d d|           open: a b     sent: c d d
//   second piece     a b d b d d          open: none    sent: all
//
// Whoever walks over the rows of each piece, parents first, and adds up what is sent, has the sums of all calls: each
// call is sent once, with the parents, depth, times and marks that rebuild_calls() gives it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "reader/model.h"
#include "reader/trace.h"

namespace karst::reader {

struct Piece {
  /// Rows from `end` on are not complete yet and come again. Sums beside the columns (events, oddities, ...) are those
  /// up to here, and last_ticks is that of the segments before.
  const Calls& calls;
  std::uint32_t end = 0;
  std::span<const std::uint32_t> open;  ///< rows below `end`, rising; their duration is as if they never ended
  std::uint32_t carried = 0;            ///< so many first rows were in `open` of the piece before
  std::uint32_t parted = 0;             ///< rows below this one have called others, if only in pieces before
  std::size_t notes = 0;                ///< so many of the first notes are this piece's
  /// All were sent: the piece is empty, and the sums are those of rebuild_calls().
  bool last = false;
};
/// `calls`: those of the piece, whose `taken`, and what belongs to it, may be written.
using PieceUse = std::function<void(const Piece& piece, Calls& calls)>;

/// All of a thread's calls as one piece, and the empty one that comes last.
Piece whole_piece(const Calls& calls);
Piece last_piece(const Calls& calls);

/// Calls `use(row)` for each row of a piece that is sent, in rising order.
template <typename Use>
void each_sent(const Piece& piece, Use&& use) {
  std::uint32_t row = 0;
  for (const std::uint32_t open : piece.open) {
    for (; row < open; ++row) use(row);
    ++row;
  }
  for (; row < piece.end; ++row) use(row);
}

struct PieceOptions {
  /// About so many rows make a piece; it has more where more calls are open. 31 bytes each.
  std::size_t rows = std::size_t{1} << 15;
  /// Calls whose enter is lost are parents of what they called, as rebuild_calls() has it. That takes a second look at
  /// all events, as only their exits tell of them. Else they come as a piece of their own behind the others.
  bool is_tree = true;
  std::atomic<std::uint64_t>* done = nullptr;  ///< counts the events that were looked at; may be null
};

/// Calls `use` for each piece of a thread's calls, and for the last, empty one. Pieces are good until it returns. Never
/// fails. `used`, and what is returned: memory, for the next thread.
Calls each_piece(const Trace& trace, const Thread& thread, const PieceOptions& options, const PieceUse& use,
                 Calls used = {});

}  // namespace karst::reader
