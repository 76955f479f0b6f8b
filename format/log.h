// SPDX-License-Identifier: MIT
// Logs: messages whose format and arguments are kept apart, for the reader to format (include/karst/karst.h).
//
//   note:   level (1 byte), then the arguments, each in as many bytes as its type has, the lowest first
//             a text: its size (2 bytes), then its bytes
//   name:   the format's text; its `values` (SymbolRecord) are the style, % or {, and a letter for each argument
//
// The letters are those of Python's struct module. Zeros at a note's end are not kept: what is missing is zero. A note
// without any byte says nothing of its arguments (they were stripped).
#pragma once
#include <cstdint>

namespace karst::format {

inline constexpr std::uint32_t kMostLogArguments = 8;
/// Bits of a text's size; the others are its bytes.
inline constexpr std::uint16_t kLogTextCut = 0x8000;
/// The size of a text whose address is null; no bytes.
inline constexpr std::uint16_t kLogTextNull = 0x7fff;

inline constexpr char kLogText = 's';
inline constexpr char kLogAddress = 'P';

/// Bytes of a number or an address; 0 for a text and for letters that mean nothing.
constexpr std::uint32_t log_bytes(char type) {
  switch (type) {
    case '?':
    case 'c':
    case 'b':
    case 'B':
      return 1;
    case 'h':
    case 'H':
      return 2;
    case 'i':
    case 'I':
    case 'f':
      return 4;
    case 'q':
    case 'Q':
    case 'd':
    case kLogAddress:
      return 8;
    default:
      return 0;
  }
}

}  // namespace karst::format
