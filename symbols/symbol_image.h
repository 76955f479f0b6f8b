// SPDX-License-Identifier: MIT
// The bytes of a symbol table, in memory and in the cache.
//
//   image := ImageHeader ImageRow*row_count ImageInlined*inlined_count heap
//
// Little-endian, fixed width. Texts lie in the heap, each ended by a NUL byte, and are named by their offset; offset 0
// is the empty text. The heap's last byte is NUL, so that no text can run out of it. Private to Karst: another kVersion
// is simply rebuilt. Raise it when the layout changes, or when what is put into it does (demangling, choice among
// aliases, path normalisation).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace karst::symbols {

inline constexpr unsigned char kImageMagic[8] = {0x89, 'K', 'S', 'Y', 'M', '\r', '\n', 0x1a};
inline constexpr std::uint32_t kImageVersion = 2;
/// Texts of a table. A damaged symbol table can name the same long text a million times.
inline constexpr std::size_t kMaxHeap = std::size_t{2} << 30;

struct ImageHeader {
  unsigned char magic[8];
  std::uint32_t version;
  std::uint32_t flags;      ///< ImageFlag bits
  std::uint64_t row_count;  ///< rows
  std::uint64_t heap_size;  ///< bytes
  std::uint32_t build_id_size;
  unsigned char build_id[64];
  std::uint32_t inlined_count;  ///< inlined functions
  std::uint32_t payload_crc;    ///< CRC-32C of rows, inlined functions and heap
  std::uint32_t header_crc;     ///< CRC-32C of the 108 bytes before it
};
static_assert(sizeof(ImageHeader) == 112 && offsetof(ImageHeader, header_crc) == 108);

enum ImageFlag : std::uint32_t {
  kImageHasDebugInfo = 1,
  kImageInlinedCut = 2,  ///< more was inlined than is kept
};

/// Rows are sorted and disjoint.
struct ImageRow {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t name;
  std::uint32_t link_name;
  std::uint32_t file;
  std::uint32_t line;
  std::uint32_t inlined_first;  ///< what was inlined into it: this one
  std::uint32_t inlined_count;  ///< and so many from there
};
static_assert(sizeof(ImageRow) == 40);

/// A function that was inlined; see reader/inlined.h for the meaning. Parents come before children.
struct ImageInlined {
  std::uint32_t name;
  std::uint32_t file;
  std::uint32_t line;
  std::uint32_t call_file;
  std::uint32_t call_line;
  std::uint32_t copies;
  std::uint32_t depth;  ///< from 1
};
static_assert(sizeof(ImageInlined) == 28);

/// An image and its size in bytes.
struct Image {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
};

/// Collects rows and texts, then lays them out. One thread.
class ImageBuilder {
 public:
  ImageBuilder() : heap_(1, '\0') {}

  /// Offset of a text that is not shared; cut at its first NUL byte.
  std::uint32_t add_text(std::string_view text);
  /// Offset of a text that many rows share.
  std::uint32_t intern(std::string_view text);
  /// Rows come in order of address and do not overlap.
  void add_row(const ImageRow& row) { rows_.push_back(row); }
  std::vector<ImageInlined>& inlined() { return inlined_; }

  /// Error when the texts exceed kMaxHeap. `flags` are ImageFlag bits; `build_id` longer than 64 bytes is left out.
  Result<Image> finish(std::string_view build_id, std::uint32_t flags) const;

 private:
  std::string heap_;
  bool full_ = false;
  std::vector<ImageRow> rows_;
  std::vector<ImageInlined> inlined_;
  std::unordered_map<std::string, std::uint32_t> interned_;
};

/// Checks everything that lookups rely on: sizes, checksums, order, offsets. Returns the header.
Result<ImageHeader> check_image(const std::byte* bytes, std::size_t size);

}  // namespace karst::symbols
