// SPDX-License-Identifier: MIT
// Pictures of frames (format/picture.h), put together from a thread's notes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/requests.h"
#include "reader/model.h"

namespace karst::analysis {

struct Picture {
  std::uint64_t ticks = 0;   ///< when it was handed over
  std::uint32_t name = 0;    ///< the frames' name: id of a function
  std::uint32_t ago = 0;     ///< so many frames have ended since the one that it shows
  std::uint32_t width = 0;   ///< pixels, a multiple of 4
  std::uint32_t height = 0;  ///< the same
  std::string blocks{};      ///< BC1: 8 bytes for each 4 times 4 pixels, line by line
};

/// Those of a thread, whole ones alone, in order of time. A name's id is the thread's process's.
std::vector<Picture> pictures_in(const reader::Calls& calls);

/// The number of the frame that it shows; 0: none of these, which are in order of time and of which the first ones
/// may be missing.
std::uint64_t frame_shown(const Picture& picture, const std::vector<RequestWork>& frames);

/// What such a note says: `160 x 90`; empty: it is no picture.
std::string picture_text(std::string_view bytes);

/// Three bytes a pixel: red, green, blue.
std::string decompressed(const Picture& picture);

}  // namespace karst::analysis
