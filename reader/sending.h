// SPDX-License-Identifier: MIT
// What a Rebuilder keeps beside its rows while it sends them away (reader/pieces.cc).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reader/held_times.h"
#include "reader/pieces.h"
#include "reader/rebuilder.h"

namespace karst::reader {

struct Rebuilder::Sending {
  PieceUse use;
  std::size_t rows = 0;  // about so many in a piece
  bool may_overlap = false;
  bool is_first_segment = true;

  std::size_t segment = 0;           // number of the one at hand
  std::vector<SegmentBegin> begins;  // found, or known
  bool knows_begins = false;         // before a segment comes
  std::size_t left_unentered = 0;    // known ones whose exit has not come
  std::vector<std::uint32_t> open;   // rows
  std::vector<std::uint64_t> real;   // durations of these
  std::size_t carried = 0;           // see Piece
  std::size_t parted = 0;            // see Piece
  std::size_t inherited_from = 0;    // the next rows to be marked
  std::size_t inherited = 0;         // so many
  std::uint8_t inherited_marks = 0;
  std::optional<TimeHolder> holder;  // set when times may be out of order
};

}  // namespace karst::reader
