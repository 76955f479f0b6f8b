// SPDX-License-Identifier: MIT
// What programs that carry NVTX 3 (a library of headers) share with the library that NVTX_INJECTION64_PATH names.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::runtime::nvtx {

/// What a program's getExportTable() knows.
inline constexpr std::uint32_t kCallbacks = 1;
inline constexpr std::uint32_t kVersionInfo = 3;

/// Pointers to the pointers that the program's calls go through.
using FunctionTable = void***;

struct Callbacks {
  std::size_t size;
  /// 0: there is no such module. `count` is of entries that may be filled, the first of which is none.
  int (*get_functions)(std::uint32_t module, FunctionTable* table, unsigned* count);
};

struct VersionInfo {
  std::size_t size;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_version)(std::uint32_t version);
};

inline constexpr std::uint32_t kCore = 1;   ///< module
inline constexpr std::uint32_t kCore2 = 5;  ///< the same with domains

struct Attributes {
  std::uint16_t version;
  std::uint16_t size;  ///< of this, as the program knows it
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};
static_assert(offsetof(Attributes, payload) == 24 && offsetof(Attributes, message) == 40 && sizeof(Attributes) == 48);

enum class MessageType : std::int32_t { kNone = 0, kText = 1, kWide = 2, kRegistered = 3 };
enum class PayloadType : std::int32_t { kNone = 0, kU64, kI64, kDouble, kU32, kI32, kFloat };

inline constexpr std::int32_t kArgb = 1;  ///< color_type; 0: there is none

/// What a pushed or popped range returns where no tool looks.
inline constexpr int kNoLevel = -2;

}  // namespace karst::runtime::nvtx
