// SPDX-License-Identifier: MIT
// How a module says that it has sleds: an ELF note, and the tables that the note points to.
//
// The note is put into every executable and shared library by toolchain/module.S, lies in a PT_NOTE segment, and is
// found by the runtime (in memory) and by `karst run` (in the file) without any symbol. All addresses are
// self-relative (address of the field plus its value), so nothing needs relocating at load time. A module may have any
// mixture of these:
//
// karst_sleds     of gcc: one record a sled, a function's entry first and its exits behind it; records of 2 to 8
//                 bytes, below. Written by toolchain/asm_filter.cc.
// karst_clang_sleds   the same of clang's sleds, of which those of entries have become NOPs. Written by
//                 toolchain/clang_objects.cc, from the next.
// xray_instr_map  of clang's -fxray-instrument: its own table of 32-byte records, version 2. It remains where Karst
//                 has not seen the object before it was linked.
// KARST_NOTE_FINSTRUMENT   code made with -finstrument-functions: calls of __cyg_profile_func_enter and _exit. The
//                 module is to be linked with module.S assembled with -DKARST_FINSTRUMENT; if the code is clang's,
//                 with -DKARST_NO_CLEANUPS as well: clang's exits are not recorded when an exception passes by.
//
// Functions of objects that have sleds in others can be without by the will of their source or of a compiler's option
// (no_instrument_function, --karst-threshold), as can thunks. A section that is not loaded, KARST_UNTRACED_SECTION, has
// their ELF addresses, 8 bytes each, so that `karst run` patches those alone that come from other compilers. Where
// xray_instr_map remains, nothing tells.
//
// A module that is loaded later than the runtime registers itself: module.S has a constructor, before all others of the
// module, that calls karst_register_module, and a destructor, behind all others, that calls karst_unregister_module.
// Both are weak: without libkarst nothing happens. In another namespace (dlmopen) the symbols cannot be seen; there the
// constructor finds libkarst among the modules of the first namespace (_r_debug) and calls its ELF entry point.
//
// Static programs: link libkarst.a with -u karst_register_module. libkarst has a note of its own, of type
// KARST_NOTE_TYPE_RUNTIME, by which `karst run` knows that a static program has the runtime inside.
#ifndef KARST_FORMAT_SLED_NOTE_H
#define KARST_FORMAT_SLED_NOTE_H

#define KARST_UNTRACED_SECTION "karst_untraced"
#define KARST_NOTE_NAME "Karst"
#define KARST_NOTE_TYPE 1
#define KARST_NOTE_TYPE_RUNTIME 2
#define KARST_NOTE_VERSION 4
/// The runtime's own version for modules, in SledNote::runtime and in libkarst's note; see there.
#define KARST_RUNTIME_VERSION 6

#define KARST_NOTE_FINSTRUMENT 1
#define KARST_NOTE_NO_CLEANUPS 2

#define KARST_SLED_ENTRY 0
#define KARST_SLED_RETURN 1
#define KARST_SLED_TAIL_CALL 2
#define KARST_SLED_COLD 3
#define KARST_SLED_REGISTER_TAIL_CALL 4
#define KARST_SLED_KIND_MASK 0xff
#define KARST_SLED_ALWAYS 0x100

// Of karst_sleds' and karst_clang_sleds' units of 2 bytes.
#define KARST_SLED_UNIT_NEAR 1
#define KARST_SLED_UNIT_TAIL_CALL 0x8000
#define KARST_SLED_UNIT_FAR 1
#define KARST_SLED_UNIT_REGISTERS 3
#define KARST_SLED_UNIT_JUMP 5

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

namespace karst::format {

/// Version 1 ended with table_end, version 2 with reserved; up to version 3 entries in karst_clang_sleds are clang's. A
/// later version may only be longer; what a runtime must know to trace the module raises `runtime` instead.
struct SledNote {
  std::uint32_t version;  ///< KARST_NOTE_VERSION, or less
  std::uint32_t flags;    ///< KARST_NOTE_FINSTRUMENT, KARST_NOTE_NO_CLEANUPS
  std::int32_t table_begin;
  std::int32_t table_end;
  std::int32_t xray_begin;
  std::int32_t xray_end;
  std::uint32_t runtime;   ///< the least KARST_RUNTIME_VERSION that understands this module
  std::uint32_t reserved;  ///< 0
  std::int32_t clang_begin;
  std::int32_t clang_end;
};
static_assert(sizeof(SledNote) == 40 && offsetof(SledNote, xray_begin) == 16);
inline constexpr std::uint32_t kSledNoteSizeOfVersion1 = 16;
inline constexpr std::uint32_t kSledNoteSizeOfVersion2 = 32;
inline constexpr std::uint32_t kSledNoteOfNops = 4;  ///< the version from which on they are NOPs

/// libkarst's own note.
struct RuntimeNote {
  std::uint32_t version;  ///< KARST_RUNTIME_VERSION
};

enum class SledKind : std::uint32_t {
  kEntry = KARST_SLED_ENTRY,         ///< first instruction of a function (behind endbr64)
  kReturn = KARST_SLED_RETURN,       ///< in front of a return
  kTailCall = KARST_SLED_TAIL_CALL,  ///< in front of a jump to another function
  kCold = KARST_SLED_COLD,           ///< no sled: where the function's part in another section begins (its FDE's start)
  /// A tail call that passes nothing on the stack: libkarst may call in its place (arch/x86_64/tail_hooks.S).
  kRegisterTailCall = KARST_SLED_REGISTER_TAIL_CALL,
};
constexpr bool is_tail_call(SledKind kind) {
  return kind == SledKind::kTailCall || kind == SledKind::kRegisterTailCall;
}

/// A record of karst_sleds or karst_clang_sleds, decoded. A sled of gcc's is a 5-byte NOP (0f 1f 44 00 00) at an even
/// address until it is patched with a 5-byte call. So is an entry of clang's, and a NOP of 6 bytes stands behind it
/// (66 0f 1f 44 00 00); for clang's exits see XRayRecord. In the table it takes one of these, in units of 2 bytes,
/// little-endian:
///
///   an entry     its distance from this field, 4 bytes: even, as both are
///   an exit      KARST_SLED_UNIT_NEAR, its distance from its function's entry, even and below 32 KiB, and
///                KARST_SLED_UNIT_TAIL_CALL for a tail call's
///   a tail call  KARST_SLED_UNIT_REGISTERS, then as before: it passes nothing on the stack.
///                KARST_SLED_UNIT_JUMP, then as before: it may pass something. What is linked may tell, and then
///                toolchain/karst_tail_calls.cc makes the former of it. No exit is so near to its entry that either
///                could be its distance
///   any          KARST_SLED_UNIT_FAR; SledKind, or-ed with KARST_SLED_ALWAYS for an entry that is always to be
///                traced; the distance from this field, 4 bytes
struct SledRecord {
  std::uint32_t units;  ///< that it takes; 0: there is no whole record
  std::uint32_t kind;   ///< as the table has it
  std::uint64_t address;
};

/// The record at the beginning of `units`, which stand at `at`; `left` of them there are. `entry`: the address of the
/// entry before it, 0 if there was none.
constexpr SledRecord decode_sled(const std::uint16_t* units, std::uint64_t left, std::uint64_t at,
                                 std::uint64_t entry) {
  const auto distant = [&](std::uint32_t first) {
    const std::uint32_t distance = units[first] | static_cast<std::uint32_t>(units[first + 1]) << 16;
    const auto wide = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(distance)});
    return at + first * sizeof *units + wide;
  };
  if (left == 0) return {};
  const std::uint32_t first = units[0];
  if (first % 2 == 0) return left < 2 ? SledRecord{} : SledRecord{2, KARST_SLED_ENTRY, distant(0)};
  if (first == KARST_SLED_UNIT_FAR) return left < 4 ? SledRecord{} : SledRecord{4, units[1], distant(2)};
  const bool by_registers = first == KARST_SLED_UNIT_REGISTERS;
  const std::uint32_t before = by_registers || first == KARST_SLED_UNIT_JUMP ? 1 : 0;
  if (left <= before || entry == 0) return {};
  const std::uint32_t exit = units[before];
  const std::uint32_t kind = by_registers                              ? KARST_SLED_REGISTER_TAIL_CALL
                             : (exit & KARST_SLED_UNIT_TAIL_CALL) != 0 ? KARST_SLED_TAIL_CALL
                                                                       : KARST_SLED_RETURN;
  return {before + 1, kind, entry + (exit & ~std::uint32_t{KARST_SLED_UNIT_TAIL_CALL | KARST_SLED_UNIT_NEAR})};
}

/// Steps through a table of `count` units that stands at `at`, from the entry with this number on: calls
/// visit(SledRecord, its number) until that returns false. Numbers count units. Returns the number of the record at
/// which it stopped; `count` at the table's end, less before a record that is not whole.
template <typename Visit>
constexpr std::uint64_t walk_sleds(const std::uint16_t* units, std::uint64_t count, std::uint64_t at,
                                   std::uint64_t number, Visit visit) {
  for (std::uint64_t entry = 0; number < count;) {
    const SledRecord r = decode_sled(units + number, count - number, at + number * sizeof *units, entry);
    if (r.units == 0) return number;
    if ((r.kind & KARST_SLED_KIND_MASK) == KARST_SLED_ENTRY) entry = r.address;
    if (!visit(r, number)) return number;
    number += r.units;
  }
  return number;
}

/// LLVM's (llvm/docs/XRay.rst): a sled has 11 bytes, `jmp` over nine bytes of NOP at an entry and in front of a tail
/// call, `ret` and ten bytes of NOP at an exit.
struct XRayRecord {
  std::int64_t address;       ///< relative to this field
  std::int64_t function;      ///< where its function begins; relative to this field
  std::uint8_t kind;          ///< XRayKind
  std::uint8_t always;        ///< 1: the source asks to trace it always
  std::uint8_t version;       ///< kXRayVersion
  std::uint8_t in_registers;  ///< ours, LLVM's is 0: of a tail call that passes nothing on the stack
  std::uint8_t padding[12];
};
static_assert(sizeof(XRayRecord) == 32 && offsetof(XRayRecord, kind) == 16);
inline constexpr std::uint8_t kXRayVersion = 2;

enum class XRayKind : std::uint8_t {
  kEntry = 0,
  kReturn = 1,
  kTailCall = 2,
  kEntryWithArguments = 3,
  kCustomEvent = 4,  ///< these two are not sleds of a function; they are left alone
  kTypedEvent = 5,
};

}  // namespace karst::format
#endif
#endif
