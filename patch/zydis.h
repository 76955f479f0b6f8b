// SPDX-License-Identifier: MIT
// The decoder of instructions as this room uses it: one, for 64-bit code. Any thread.
#pragma once
#include <Zydis/Decoder.h>

namespace karst::patch {

inline const ZydisDecoder& zydis() {
  static const ZydisDecoder s_decoder = [] {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return decoder;
  }();
  return s_decoder;
}

/// The register of 64 bits that this one is a part of.
inline ZydisRegister whole(ZydisRegister reg) {
  return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

}  // namespace karst::patch
