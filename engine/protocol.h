// SPDX-License-Identifier: MIT
// The numbers of docs/viewer-protocol.md: binary layouts that server and page share, and their limits. Little-endian,
// fixed width; columns follow their headers, each padded to a multiple of 8 bytes so that the page can lay typed arrays
// over the bytes without copying.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::engine {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::uint32_t kTilesMagic = 0x4c49544b;    ///< "KTIL"
inline constexpr std::uint32_t kMinimapMagic = 0x504d4d4b;  ///< "KMMP"

inline constexpr std::uint32_t kMaxWidth = 8192;  ///< pixels of a tile
/// In tiles: several calls in one slice. Stands where reader::kCallInherited does elsewhere.
inline constexpr std::uint8_t kSliceSummed = 128;
inline constexpr std::size_t kMaxGaps = 1000;           ///< of a thread in api/trace
inline constexpr std::size_t kMaxParents = 256;         ///< in api/call
inline constexpr std::size_t kMaxChildren = 50;         ///< in api/call
inline constexpr std::size_t kMaxOccurrences = 1000;    ///< in api/occurrences
inline constexpr std::size_t kSourceWhole = 1U << 20U;  ///< bytes of a source file that are sent whole

struct TileHeader {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t rows;
  std::uint32_t slices;
  double begin;  ///< ns from the trace's start
  double end;
};
static_assert(sizeof(TileHeader) == 32 && offsetof(TileHeader, begin) == 16);

/// The slices of one lane of one track.
struct TileRow {
  std::uint32_t track;  ///< its id
  std::uint32_t depth;
  std::uint32_t first;
  std::uint32_t count;
};
static_assert(sizeof(TileRow) == 16);

struct MinimapHeader {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t threads;
  std::uint32_t width;
};
static_assert(sizeof(MinimapHeader) == 16);

}  // namespace karst::engine
