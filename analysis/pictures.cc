// SPDX-License-Identifier: MIT
#include "analysis/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "format/picture.h"

namespace karst::analysis {

using format::PictureHead;

namespace {

/// Nothing: the bytes are not as karst_picture() writes them.
std::optional<PictureHead> head_of(std::string_view bytes) {
  PictureHead head{};
  // Zeros at a note's end are not kept.
  std::memcpy(&head, bytes.data(), std::min(bytes.size(), sizeof head));
  const std::uint32_t pixels = std::uint32_t{head.width} * head.height;
  if (pixels == 0 || pixels > format::kMostPicturePixels || head.width % 4 != 0 || head.height % 4 != 0)
    return std::nullopt;
  const std::uint32_t size = format::picture_bytes(head.width, head.height);
  if (head.parts != (size + format::kPictureBytesInNote - 1) / format::kPictureBytesInNote || head.part >= head.parts)
    return std::nullopt;
  return head;
}

struct Rgb {
  unsigned of[3];
};

Rgb unpacked(unsigned color) {
  const unsigned red = color >> 11, green = color >> 5 & 63, blue = color & 31;
  return {{red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2}};
}

Rgb between(const Rgb& a, const Rgb& b, unsigned of_a, unsigned of_b) {
  Rgb mixed{};
  for (int c = 0; c < 3; ++c) mixed.of[c] = (a.of[c] * of_a + b.of[c] * of_b) / (of_a + of_b);
  return mixed;
}

}  // namespace

std::vector<Picture> pictures_in(const reader::Calls& calls) {
  struct Open {
    Picture picture;
    unsigned next_part = 0;
  };
  std::vector<Picture> pictures;
  std::map<std::uint32_t, Open> open;  // by number: a signal handler's may lie among the parts of another
  for (const reader::Note& note : calls.notes) {
    const bool is_first = note.is(format::NoteKind::kPicture);
    if (!is_first && !note.is(format::NoteKind::kPicturePart)) continue;
    const std::string_view bytes = calls.bytes_of(note);
    const std::optional<PictureHead> head = head_of(bytes);
    if (!head || (head->part == 0) != is_first) continue;
    if (head->part == 0) open[head->number] = {{note.ticks, note.name, head->ago, head->width, head->height, {}}, 0};
    const auto of = open.find(head->number);
    if (of == open.end()) continue;
    Picture& picture = of->second.picture;
    if (head->part != of->second.next_part || head->width != picture.width || head->height != picture.height) {
      open.erase(of);
      continue;
    }
    ++of->second.next_part;
    const std::uint32_t size = format::picture_bytes(picture.width, picture.height);
    const std::size_t end = std::min<std::size_t>(size, picture.blocks.size() + format::kPictureBytesInNote);
    const std::string_view part = bytes.size() > sizeof *head ? bytes.substr(sizeof *head) : std::string_view();
    picture.blocks.append(part.substr(0, end - picture.blocks.size()));
    picture.blocks.resize(end);
    if (head->part + 1 != head->parts) continue;
    pictures.push_back(std::move(picture));
    open.erase(of);
  }
  return pictures;
}

std::uint64_t frame_shown(const Picture& picture, const std::vector<RequestWork>& frames) {
  // The frame that has not ended at that time.
  const auto at = std::partition_point(frames.begin(), frames.end(),
                                       [&](const RequestWork& frame) { return frame.range.end < picture.ticks; });
  if (at - frames.begin() < static_cast<std::ptrdiff_t>(picture.ago)) return 0;
  const auto shown = at - static_cast<std::ptrdiff_t>(picture.ago);
  return shown == frames.end() ? 0 : shown->id;
}

std::string picture_text(std::string_view bytes) {
  const std::optional<PictureHead> head = head_of(bytes);
  if (!head) return {};
  return fmt::format("{} x {}", head->width, head->height);
}

std::string decompressed(const Picture& picture) {
  std::string pixels(std::size_t{picture.width} * picture.height * 3, '\0');
  const auto byte = [&](std::size_t at) { return unsigned{static_cast<unsigned char>(picture.blocks[at])}; };
  for (std::size_t block = 0; block * 8 < picture.blocks.size(); ++block) {
    const std::size_t from = block * 8;
    const unsigned first = byte(from) | byte(from + 1) << 8;
    const unsigned second = byte(from + 2) | byte(from + 3) << 8;
    const Rgb a = unpacked(first), b = unpacked(second);
    // The other order of the two says: one colour between, and black.
    const Rgb colors[] = {a, b, first > second ? between(a, b, 2, 1) : between(a, b, 1, 1),
                          first > second ? between(a, b, 1, 2) : Rgb{}};
    const std::size_t in_line = picture.width / 4;
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t x = block % in_line * 4 + i % 4, y = block / in_line * 4 + i / 4;
      const Rgb& color = colors[byte(from + 4 + i / 4) >> (2 * (i % 4)) & 3];
      for (std::size_t c = 0; c < 3; ++c) pixels[(y * picture.width + x) * 3 + c] = static_cast<char>(color.of[c]);
    }
  }
  return pixels;
}

}  // namespace karst::analysis
