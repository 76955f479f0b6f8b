// SPDX-License-Identifier: MIT
// What karst run gives to a process for a module: where and how to patch functions that have no sleds, and the probes
// that the module has (patch/sdt.h). karst finds and checks the places (patch/), the runtime writes
// (runtime/unbuilt/plain_code.h).
//
//   PatchTable   PatchProbe[probes]   PatchSled[sleds]   PatchJump[jumps]   PatchFixup[fixups]   PatchDetour[detours]
//   code   text
//
// The code is stubs: position-independent but for the fixups, each of which is a distance of 32 bits to be filled in.
// The runtime maps it near the module. A stub of an entry has a sled, the instructions over which the jump was written,
// and a jump back behind them; a stub of an exit has such instructions, a sled, and the return or jump.
// Sleds are gcc's NOPs of 5 bytes, so that all that applies to sleds applies to these.
//
// Places that a jump without libc leads to (__builtin_longjmp) are probes of a kind: one where the jump lands, and
// behind it those where the place is set. Their jumps count as that one's: a jump that lands at a place that nobody was
// seen to set would end all calls.
//
// With probes the code begins with two words for the runtime to fill in: the address of karst_hook_probe, and whose
// probes these are. A probe's stub has the instructions before it, a call of that hook below the red zone, the
// instructions behind it, and a jump back. The hook's frame is SavedProbe.
//
// A detour is for a function that a module has in itself, as an allocator's malloc, and before which a library of ours
// shall stand (interpose/). Its stub has a NOP of 8 bytes that can become a jump to that library, then the instructions
// over which the jump was written, and a jump back behind them: what the library calls as the function.
#ifndef KARST_FORMAT_PATCH_TABLE_H
#define KARST_FORMAT_PATCH_TABLE_H

// What arch/x86_64/probe.S needs of SavedProbe, in bytes.
#define KARST_PROBE_RED_ZONE 128
#define KARST_PROBE_PUSHED_BY_STUB 24  // the number, whose probes they are, the return address

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

#include "format/values.h"

namespace karst::format {

inline constexpr std::uint32_t kPatchTableMagic = 0x5450424B;  // "KBPT"
inline constexpr std::uint32_t kPatchTableVersion = 8;
inline constexpr std::uint64_t kMostPatchTable = std::uint64_t{512} << 20;  ///< bytes

struct PatchTable {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t functions;
  std::uint32_t sleds;
  std::uint32_t jumps;
  std::uint32_t fixups;
  std::uint32_t probes;
  std::uint32_t detours;
  std::uint32_t text_size;   ///< bytes; the last is a NUL
  std::uint32_t left_alone;  ///< functions that were wanted and cannot be patched
  std::uint64_t code_size;
  std::uint64_t code_begin;  ///< ELF addresses of the module's executable segments, as the file has them: what the
  std::uint64_t code_end;    ///< runtime finds in memory must be the same
};
static_assert(sizeof(PatchTable) == 64);

inline constexpr std::uint32_t kMostProbeValues = 12;  ///< of a probe; sys/sdt.h has no more

enum class PatchProbeKind : std::uint32_t {
  kNote = 0,       ///< a note, which is a kRecord of the probe's name (format/note.h)
  kSetsPlace = 1,  ///< the stack pointer is that of a place that a jump may lead to; it has no name
  kLands = 2,      ///< such a jump has ended
};

struct PatchProbe {
  std::uint64_t semaphore;    ///< ELF address of 16 bits that are raised where somebody listens; 0: it has none
  std::uint32_t name;         ///< in the text, NUL-terminated: PROVIDER:NAME
  std::uint32_t description;  ///< in the text, NUL-terminated: of its values (format/values.h)
  std::uint32_t values;       ///< ops that there are
  PatchProbeKind kind;
  ValueOp ops[kMostProbeValues];  ///< places are words of SavedProbe
};
static_assert(sizeof(PatchProbe) == 120);

/// What karst_hook_probe has on the stack. `rsp` is the program's.
struct SavedProbe {
  std::uint64_t rsp, rax, rdx, rcx, rsi, rdi, r8, r9, r10, r11, rbp, rbx, r12, r13, r14, r15;
  std::uint64_t flags;
  std::uint64_t stub;    ///< return address
  std::uint64_t probes;  ///< whose they are
  std::uint64_t number;
};
constexpr std::uint32_t kPatchHookSlot = 0, kPatchProbesSlot = 8;  ///< in the code, of a table with probes

/// A function's entry comes first, then its exits, then the parts that a compiler split off it.
struct PatchSled {
  std::uint32_t offset;    ///< in the code; kCold: 0
  std::uint32_t kind;      ///< SledKind; of an entry perhaps with kPatchSledLate
  std::uint64_t function;  ///< ELF address of the function, or of the part
};
static_assert(sizeof(PatchSled) == 16);
/// The function has begun: what it was given may not be in its registers any more, and arithmetic flags are live.
inline constexpr std::uint32_t kPatchSledLate = 0x200;

/// Bytes to be written over the module's code. Those of one number stand together, and are written together or not.
struct PatchJump {
  std::uint64_t address;     ///< ELF address
  std::uint32_t function;    ///< number of the function among the entries; from `functions` on, of a probe; then
                             ///< of a detour
  std::uint32_t offset;      ///< in the code: where the jump leads to, if it has a field
  std::uint8_t size;         ///< bytes that are written, 1 to 8
  std::uint8_t field;        ///< where among them a distance of 32 bits to `offset` is filled in; 255: nowhere
  std::uint8_t guard;        ///< while they change, nobody may stand at the last `guard` bytes up to `address`, either
  std::uint8_t alone;        ///< 1: no other jump stands on what this one replaced, so it may be taken back alone
  std::uint8_t reserved[4];  ///< 0
  std::uint8_t before[8];    ///< what must stand there
  std::uint8_t after[8];     ///< what shall
};
static_assert(sizeof(PatchJump) == 40);
inline constexpr std::uint8_t kPatchNoField = 255;

/// What a process says of the stubs that it has mapped, for karst attach and karst off: the dynamic symbol
/// karst_patched_modules of libkarst.so. Addresses are the process's own.
struct PatchedModule {
  std::uint64_t bias;   ///< added to ELF addresses
  std::uint64_t stubs;  ///< where the table's code lies
  std::uint64_t table;  ///< a PatchTable
  std::uint64_t table_size;
};
inline constexpr std::uint32_t kMostPatchedModules = 64;
struct PatchedModules {
  std::uint32_t version;  ///< kPatchTableVersion
  std::uint32_t count;    ///< of modules; the last to be written
  PatchedModule modules[kMostPatchedModules];
};

/// Before the NOP lies room for a jump to any address: kPatchDetourJump bytes, of which the last 8 are the address.
struct PatchDetour {
  std::uint64_t function;  ///< ELF address
  std::uint32_t offset;    ///< in the code, of the NOP; a multiple of 8. Behind it lies what the function was
  std::uint32_t name;      ///< in the text, NUL-terminated: the linker's
};
static_assert(sizeof(PatchDetour) == 16);
inline constexpr std::uint32_t kPatchDetourJump = 16;  ///< two bytes of nothing, jmp *0(%rip), its address
inline constexpr std::uint32_t kPatchDetourNop = 8;

/// The code's 4 bytes at `offset` become the distance from their end to `target`.
struct PatchFixup {
  std::uint64_t target;    ///< ELF address
  std::uint32_t offset;    ///< in the code
  std::uint32_t reserved;  ///< 0
};
static_assert(sizeof(PatchFixup) == 16);

}  // namespace karst::format
#endif
#endif
