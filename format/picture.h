// SPDX-License-Identifier: MIT
// Pictures of frames: what a program drew (karst_picture of include/karst/note.h), small and compressed, in notes.
//
//   a note's bytes:  PictureHead, then bytes of the compressed picture
//
// One picture is `parts` notes of one thread with the same `number`, in order: kPicture, then kPicturePart. All but the
// last one have kPictureBytesInNote bytes of it. Compressed is as BC1 of Direct3D (DXT1) has it: 8 bytes for each 4
// times 4 pixels, line by line. Width and height are multiples of 4: what the program gave stands in the upper left
// corner.
#pragma once
#include <cstdint>

#include "format/note.h"

namespace karst::format {

struct PictureHead {
  std::uint32_t number;  ///< of this process's pictures
  std::uint16_t width;   ///< pixels, a multiple of 4
  std::uint16_t height;
  std::uint8_t part;   ///< 0 is the first
  std::uint8_t parts;  ///< 1 to kMostPictureParts
  std::uint16_t ago;   ///< so many frames of the name have ended since the one that it shows
};
static_assert(sizeof(PictureHead) == 12);

inline constexpr std::uint32_t kPictureBlockBytes = 8;  ///< of 4 times 4 pixels
inline constexpr std::uint32_t kMostPicturePixels = 16384;
inline constexpr std::uint32_t kPictureBytesInNote =
    (kMostNoteBytes - sizeof(PictureHead)) / kPictureBlockBytes * kPictureBlockBytes;
inline constexpr std::uint32_t kMostPictureParts =
    (kMostPicturePixels / 2 + kPictureBytesInNote - 1) / kPictureBytesInNote;

constexpr std::uint32_t picture_bytes(std::uint32_t width, std::uint32_t height) { return width * height / 2; }

}  // namespace karst::format
