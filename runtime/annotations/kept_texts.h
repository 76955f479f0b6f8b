// SPDX-License-Identifier: MIT
// Names that a program hands over as text: kept by what they say, for as long as the process runs. The same text has
// the same entry wherever it lay, so it may be freed, or another may come to lie there. Lock-free; any context.
#pragma once
#include <cstdint>

#include "runtime/annotations/saying.h"

namespace karst::runtime {

struct KeptText {
  std::uint32_t claimed;  ///< a hash, never 0; 0: free
  std::uint32_t whole;    ///< 1: the name is there
  std::uint64_t value;    ///< its user's: what a counter counts to
  NoteName name;
};

inline constexpr std::uint32_t kMostKeptTexts = 4096;
inline constexpr std::uint32_t kLongestKeptText = 500;  ///< bytes; what is longer is cut

/// The entry of `text`, or of "domain::text" if the domain is not empty; null: there are too many. One that a signal
/// handler asks for while its own thread was making it is null, too.
KeptText* keep_text(Said domain, Said text);
/// Its place, from 0 on.
std::uint32_t number_of(const KeptText& kept);
/// The entry that was handed to the program as this address; null if it is none.
KeptText* kept_text_at(const void* address);
KeptText* kept_text_of(std::uint32_t number);

inline Said said(const KeptText& kept) { return said(kept.name.name, kLongestKeptText); }

}  // namespace karst::runtime
