// SPDX-License-Identifier: MIT
// Values: what a call was given, and what it returned. karst reads a function's types (symbols/values.h) and writes
// into the arena where its values are; the runtime copies them into a note (format/note.h) as the call begins or ends;
// readers know by the function's description how to show them.
//
//   arena:  ArenaValues, one ArenaValueSpec for each function; the function's flags have its number (value_spec_of)
//   note:   for each value  size (1 byte)  its bytes
//             size 0 to 100        the bytes of an integer, the upper ones left out if they are 0; of memory; of a text
//             size 128 to 228      the first size - 128 bytes of a text that is longer
//             kValueUnreadable     no memory can be read at its address; no bytes
//             kValueNull           its address is null; no bytes
//             kValueNoRoom         the note was full; no bytes
//           and, as zeros at a note's end are not kept, kValuesEnd; or, where the kernel was asked for memory, how long
//           that took, in ticks (4 bytes), and kValuesEndTimed
//
// A note of arguments lies before its call's enter, as the thread's next one of this function; a note of returned
// values before its exit, in the call.
//
// A description is text: arguments, `|`, returned values; each `name:type`, a comma between two.
//
//   i1 i2 i4 i8  u1 u2 u4 u8    integers and their bytes      b  bool     c  a character
//   r8                          what a system call gave: a number; above -4096 and below 0 that is errno, negative
//   f4 f8                       IEEE 754                      x  address, in hexadecimal
//   s                           text                          v16  memory of a vector, 16 bytes an element: how many
//   e4{RED=0;GREEN=1}           an enumeration of 4 bytes     ?  not there (the compiler left nothing of it): no bytes
//                                                            -  of a kind that is not shown: no bytes
#ifndef KARST_FORMAT_VALUES_H
#define KARST_FORMAT_VALUES_H

// Where a saved register or a word of the caller's stack lies, from what a hook has pushed (arch/x86_64/hooks.S), in
// words of 8 bytes.
#define KARST_SAVED_WORDS_BEFORE_STACK 12

#ifndef __ASSEMBLER__
#include <cstddef>
#include <cstdint>

namespace karst::format {

/// The name of the value that a coroutine's resumption has: the address of the coroutine's frame, of type `x`. No
/// argument of a program is called so.
inline constexpr char kCoroutineFrame[] = "coroutine frame";

/// What a hook has on the stack when it asks for values.
struct SavedRegisters {
  std::uint64_t rbp, r11, r10, r9, r8, rdi, rsi, rcx, rdx, rax;
  std::uint64_t event_low_bits;
  std::uint64_t sled;     ///< return address
  std::uint64_t stack[];  ///< of the function: at an entry, its return address, then arguments
};
static_assert(offsetof(SavedRegisters, stack) == KARST_SAVED_WORDS_BEFORE_STACK * sizeof(std::uint64_t));

enum class ValueHow : std::uint8_t {
  kRegister = 1,    ///< `size` bytes of the register or word from its byte `offset` on
  kMemory = 2,      ///< `size` bytes at the address in it + `offset`
  kText = 3,        ///< NUL-terminated, at the address in it
  kSizedText = 4,   ///< at the address in it + `offset` lie an address and a size (libstdc++'s std::string)
  kViewText = 5,    ///< it is a size, and the word whose place `size` is has an address (std::string_view)
  kViewMemory = 6,  ///< at the address in it + `offset` lie a size and an address
  kConstant = 7,    ///< `offset`
  kIndexed = 8,     ///< memory as kMemory, with an index added to the address: IndexedSize
  kTextAt = 9       ///< kText, whose address lies at the address in it + `offset`
};

/// The `size` of kIndexed.
struct IndexedSize {
  std::uint8_t bytes;  ///< 1 to 8
  std::uint8_t shift;  ///< 0 to 3: the index counts in steps of 1 to 8 bytes
  std::uint8_t index;  ///< place
};
constexpr std::uint16_t make_indexed_size(IndexedSize s) {
  return static_cast<std::uint16_t>(s.bytes | s.shift << 4 | s.index << 8);
}
constexpr IndexedSize indexed_size(std::uint16_t size) {
  return {static_cast<std::uint8_t>(size & 15), static_cast<std::uint8_t>(size >> 4 & 3),
          static_cast<std::uint8_t>(size >> 8)};
}

/// Places: words of SavedRegisters, and vector registers from kFirstVectorPlace on.
inline constexpr std::uint8_t kFirstVectorPlace = 128;
inline constexpr std::uint8_t kVectorPlaces = 8;
inline constexpr std::uint8_t kMostPlace = KARST_SAVED_WORDS_BEFORE_STACK + 64;

struct ValueOp {
  std::uint8_t how;    ///< ValueHow
  std::uint8_t place;  ///< below kMostPlace, or of a vector register
  std::uint16_t size;
  std::int32_t offset;
};
static_assert(sizeof(ValueOp) == 8);

inline constexpr std::uint32_t kMostValues = 14;  ///< of one function, arguments and returned ones
struct ArenaValueSpec {
  std::uint8_t arguments;          ///< ops[0...]
  std::uint8_t returned;           ///< ops that follow
  std::uint8_t most_text;          ///< bytes of a text, kMostValueBytes at most
  std::uint8_t numbers;            ///< the runtime's: kNumberArguments, kNumbersReturned
  std::uint32_t description;       ///< offset in ArenaValues::text
  std::uint32_t description_size;  ///< bytes
  std::uint32_t reserved2;
  ValueOp ops[kMostValues];
};
static_assert(sizeof(ArenaValueSpec) == 128);

/// All of them are kRegister.
inline constexpr std::uint8_t kNumberArguments = 1, kNumbersReturned = 2;

inline constexpr std::uint32_t kMostValueSpecs = 2048;
inline constexpr std::uint32_t kMostValueText = 1 << 20;
/// Written by karst alone: a spec first, then its number into the function's flags.
struct ArenaValues {
  std::uint32_t count;      ///< specs handed out
  std::uint32_t text_used;  ///< bytes handed out
  std::uint64_t reserved;
  ArenaValueSpec specs[kMostValueSpecs];
  char text[kMostValueText];
};

/// What the hooks go by: `karst_noted_values`, in the process's private memory. It begins as a copy of ArenaValues;
/// while the process runs, karst adds to it through the kernel (/proc/PID/mem), which knows who may change the
/// process's memory. The arena would not do: forked children with fewer rights can write to it.
struct ValueTables {
  std::uint32_t version;  ///< kValueTablesVersion
  std::uint8_t changes;   ///< raised when what was added is whole: the process then looks at `count`
  std::uint8_t reserved[3];
  std::uint32_t count;  ///< specs that are in use
  std::uint32_t reserved2;
  std::uint64_t specs;      ///< address of ArenaValueSpec[kMostValueSpecs]; 0: ask for it (ArenaControl::values_wanted)
  std::uint64_t functions;  ///< address of std::uint64_t[kMostValueSpecs]: addresses of the functions whose specs they
                            ///< are. Not ids: the arena alone has their addresses. A later spec replaces an earlier
};
inline constexpr std::uint32_t kValueTablesVersion = 1;

inline constexpr std::uint32_t kMostValueBytes = 100;  ///< of one value
inline constexpr std::uint32_t kUsualValueText = 64;   ///< of a text
inline constexpr std::uint32_t kMostValuesInNote = 400;
inline constexpr std::uint8_t kValuesEnd = 0xff;
inline constexpr std::uint8_t kValuesEndTimed = 0xfe;
using ValuesTime = std::uint32_t;  ///< ticks; the greatest also stands for more
inline constexpr std::uint8_t kValueCut = 0x80;
inline constexpr std::uint8_t kValueUnreadable = 0x7f;
inline constexpr std::uint8_t kValueNull = 0x7e;
inline constexpr std::uint8_t kValueNoRoom = 0x7d;

/// ArenaFunction::flags has a spec's number + 1 in these bits; 0: the function's values are not wanted.
inline constexpr std::uint32_t kValueSpecShift = 16;
static_assert(kMostValueSpecs < 1U << (32 - kValueSpecShift));
constexpr std::uint32_t value_spec_of(std::uint32_t function_flags) { return function_flags >> kValueSpecShift; }

}  // namespace karst::format
#endif
#endif
