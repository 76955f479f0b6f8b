// SPDX-License-Identifier: MIT
// karst_picture() of include/karst/note.h: a frame's picture, made smaller, compressed and written as notes
// (format/picture.h).
//
// A pixel of the small picture is the mean of at most 4 times 4 points of what it stands for. A block of 4 times 4
// pixels is compressed as BC1: its darkest and its lightest colour, and for each pixel which of these two and two
// between them is nearest on the line from one to the other (J.M.P. van Waveren, Real-Time DXT Compression, 2006, has
// the idea with the box around the block's colours).
#include <cstddef>

#include "format/note.h"
#include "format/picture.h"
#include "runtime/modules/note_names.h"
#include "runtime/recording/thread.h"
#include "runtime/system/memory.h"

using namespace karst::runtime;
using namespace karst::format;

namespace {

constexpr std::uint32_t kLargestSide = 16384;
constexpr std::uint32_t kSide = 4;  // of a block
constexpr std::uint32_t kMostPoints = 4;
constexpr std::uint32_t kChannels = 3;

struct Pixel {
  std::int32_t of[kChannels];  // red, green, blue
};

constexpr std::uint32_t parts_of(std::uint32_t length, std::uint32_t part) { return (length + part - 1) / part; }
constexpr std::uint32_t padded(std::uint32_t length) { return parts_of(length, kSide) * kSide; }

/// What the program drew, `step` times `step` of its pixels as one.
class Shrunk {
 public:
  Shrunk(const unsigned char* pixels, std::uint32_t width, std::uint32_t height, bool bottom_up)
      : pixels_(pixels), width_(width), height_(height), bottom_up_(bottom_up) {
    while (padded(parts_of(width, step_)) * padded(parts_of(height, step_)) > kMostPicturePixels) ++step_;
    last_column_ = parts_of(width, step_) - 1;
    last_line_ = parts_of(height, step_) - 1;
  }

  std::uint32_t width() const { return padded(last_column_ + 1); }
  std::uint32_t height() const { return padded(last_line_ + 1); }

  /// Beside the picture are the pixels of its edge.
  Pixel at(std::uint32_t x, std::uint32_t y) const {
    const Span columns(x < last_column_ ? x : last_column_, step_, width_);
    const Span lines(y < last_line_ ? y : last_line_, step_, height_);
    Pixel sum{};
    for (std::uint32_t i = 0; i < lines.points; ++i)
      for (std::uint32_t j = 0; j < columns.points; ++j) {
        const std::uint32_t line = bottom_up_ ? height_ - 1 - lines.at(i) : lines.at(i);
        const unsigned char* pixel = pixels_ + (std::size_t{line} * width_ + columns.at(j)) * 4;
        for (std::uint32_t c = 0; c < kChannels; ++c) sum.of[c] += pixel[c];
      }
    const auto points = static_cast<std::int32_t>(lines.points * columns.points);
    for (std::int32_t& channel : sum.of) channel /= points;
    return sum;
  }

 private:
  struct Span {
    Span(std::uint32_t place, std::uint32_t step, std::uint32_t length) : first(place * step) {
      size = first + step <= length ? step : length - first;
      points = size < kMostPoints ? size : kMostPoints;
    }
    std::uint32_t at(std::uint32_t point) const { return first + point * size / points; }
    std::uint32_t first;
    std::uint32_t size;
    std::uint32_t points;
  };

  const unsigned char* pixels_;
  std::uint32_t width_;
  std::uint32_t height_;
  bool bottom_up_;
  std::uint32_t step_ = 1;
  std::uint32_t last_column_ = 0;
  std::uint32_t last_line_ = 0;
};

std::int32_t lightness(const Pixel& p) { return 2 * p.of[0] + 5 * p.of[1] + p.of[2]; }

/// 5 bits of red, 6 of green, 5 of blue.
std::uint32_t packed(const Pixel& p) {
  const auto bits = [&](std::uint32_t channel, std::int32_t most) {
    return static_cast<std::uint32_t>((p.of[channel] * most + 127) / 255);
  };
  return bits(0, 31) << 11 | bits(1, 63) << 5 | bits(2, 31);
}

/// The 8 bytes of a block, the first one in the lowest bits.
std::uint64_t compressed(const Shrunk& picture, std::uint32_t left, std::uint32_t top) {
  Pixel pixels[kSide * kSide];
  const Pixel* darkest = pixels;
  const Pixel* lightest = pixels;
  for (std::uint32_t i = 0; i < kSide * kSide; ++i) {
    pixels[i] = picture.at(left + i % kSide, top + i / kSide);
    if (lightness(pixels[i]) < lightness(*darkest)) darkest = &pixels[i];
    if (lightness(pixels[i]) > lightness(*lightest)) lightest = &pixels[i];
  }
  std::uint32_t from = packed(*darkest);
  std::uint32_t to = packed(*lightest);
  if (from == to) return std::uint64_t{to} | std::uint64_t{from} << 16;
  // The larger number stands first: that says that there are two colours between, none of them transparent.
  if (from > to) {
    const Pixel* const dark = darkest;
    darkest = lightest;
    lightest = dark;
    const std::uint32_t larger = from;
    from = to;
    to = larger;
  }
  std::int32_t length = 0;
  for (std::uint32_t c = 0; c < kChannels; ++c) {
    const std::int32_t difference = lightest->of[c] - darkest->of[c];
    length += difference * difference;
  }
  constexpr std::uint64_t kIndices[] = {1, 3, 2, 0};  // from the second colour to the first one
  std::uint64_t block = std::uint64_t{to} | std::uint64_t{from} << 16;
  for (std::uint32_t i = 0; i < kSide * kSide; ++i) {
    std::int32_t along = 0;
    for (std::uint32_t c = 0; c < kChannels; ++c)
      along += (pixels[i].of[c] - darkest->of[c]) * (lightest->of[c] - darkest->of[c]);
    std::int32_t step = length == 0 || along < 0 ? 0 : (along * 3 + length / 2) / length;
    if (step > 3) step = 3;
    block |= kIndices[step] << (32 + 2 * i);
  }
  return block;
}

std::uint32_t g_pictures;

}  // namespace

extern "C" __attribute__((visibility("default"))) void karst_api_picture(const char* name, const void* pixels,
                                                                         std::uint32_t width, std::uint32_t height,
                                                                         std::uint32_t ago, int bottom_up) {
  if (pixels == nullptr || width == 0 || height == 0 || width > kLargestSide || height > kLargestSide) return;
  const std::uint32_t id = karst_note_id(note_name_of(name));
  if (id == 0) return;
  const Shrunk picture(static_cast<const unsigned char*>(pixels), width, height, bottom_up != 0);
  const std::uint32_t bytes = picture_bytes(picture.width(), picture.height());
  PictureHead head{};
  head.number = __atomic_add_fetch(&g_pictures, 1, __ATOMIC_RELAXED);
  head.width = static_cast<std::uint16_t>(picture.width());
  head.height = static_cast<std::uint16_t>(picture.height());
  head.parts = static_cast<std::uint8_t>(parts_of(bytes, kPictureBytesInNote));
  head.ago = static_cast<std::uint16_t>(ago < 0xffff ? ago : 0xffff);
  const std::uint32_t in_line = picture.width() / kSide;
  std::uint32_t block = 0;
  for (; head.part < head.parts; ++head.part) {
    std::uint64_t blocks[kPictureBytesInNote / kPictureBlockBytes];
    std::uint32_t count = 0;
    for (; count < kPictureBytesInNote / kPictureBlockBytes && block < bytes / kPictureBlockBytes; ++count, ++block)
      blocks[count] = compressed(picture, block % in_line * kSide, block / in_line * kSide);
    const std::uint32_t size = count * kPictureBlockBytes;
    const NotePiece pieces[] = {{reinterpret_cast<const unsigned char*>(&head), sizeof head},
                                {reinterpret_cast<const unsigned char*>(blocks), size}};
    record_note(head.part == 0 ? NoteKind::kPicture : NoteKind::kPicturePart, id, pieces, 2,
                static_cast<std::uint32_t>(sizeof head) + size);
  }
}
