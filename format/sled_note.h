// How a module says that it has sleds: an ELF note, and the table that the note points to.
//
// The note is put into every executable and shared library by toolchain/module.S, lies in a PT_NOTE segment, and is
// found by the runtime (in memory) and by `karst run` (in the file) without any symbol. The table is the section
// `karst_sleds`, written by toolchain/asm_filter.cc: one record a sled, a function's entry first and its exits behind
// it. All addresses are self-relative (address of the field plus its value), so nothing needs relocating at load time.
#ifndef KARST_FORMAT_SLED_NOTE_H
#define KARST_FORMAT_SLED_NOTE_H

#define KARST_NOTE_NAME "Karst"
#define KARST_NOTE_TYPE 1
#define KARST_NOTE_VERSION 1

#define KARST_SLED_ENTRY 0
#define KARST_SLED_RETURN 1
#define KARST_SLED_TAIL_CALL 2
#define KARST_SLED_COLD 3
#define KARST_SLED_KIND_MASK 0xff
#define KARST_SLED_ALWAYS 0x100

#ifndef __ASSEMBLER__
#include <cstdint>

namespace karst::format {

struct SledNote {
  std::uint32_t version;  ///< KARST_NOTE_VERSION
  std::uint32_t flags;    ///< 0
  std::int32_t table_begin;
  std::int32_t table_end;
};
static_assert(sizeof(SledNote) == 16);

enum class SledKind : std::uint32_t {
  kEntry = KARST_SLED_ENTRY,         ///< first instruction of a function (behind endbr64)
  kReturn = KARST_SLED_RETURN,       ///< in front of a return
  kTailCall = KARST_SLED_TAIL_CALL,  ///< in front of a jump to another function
  kCold = KARST_SLED_COLD,           ///< no sled: where the function's part in another section begins (its FDE's start)
};

/// A sled is a 5-byte NOP (0f 1f 44 00 00) until it is patched with a 5-byte call.
struct SledRecord {
  std::int32_t address;
  std::uint32_t kind;  ///< SledKind; of an entry, or-ed with KARST_SLED_ALWAYS if the source asks to trace it always
};
static_assert(sizeof(SledRecord) == 8);

}  // namespace karst::format
#endif
#endif
