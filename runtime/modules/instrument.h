// SPDX-License-Identifier: MIT
// Code made with -finstrument-functions: it calls __cyg_profile_func_enter and _exit with the address of the function
// (arch/*/instrument.S). Which id the address has is in a hash table, filled at a function's first call.
//
// The table has a fixed place and size, so looking up takes no lock: an entry's key is written once and stays; its id
// changes when the module goes (kStale) and when it, or another at the same address, has come.
#ifndef KARST_RUNTIME_MODULES_INSTRUMENT_H
#define KARST_RUNTIME_MODULES_INSTRUMENT_H

#define KARST_CALLS_BITS 20
#define KARST_CALLS_FACTOR 0x1e3779b1
#define KARST_CALLS_NEAR_SHIFT 4
#define KARST_CALLS_FAR_SHIFT 24

#ifndef __ASSEMBLER__
#include <cstdint>

namespace karst::runtime {

struct InstrumentedCall {
  std::uint64_t function;  ///< address; 0: the entry is free
  std::uint32_t id;        ///< 0: not traced; from kUndecided on: see there
  std::uint32_t known_id;  ///< the last id that the address had
};
static_assert(sizeof(InstrumentedCall) == 16);
inline constexpr std::uint32_t kUndecided = 0x80000000U;  ///< its id is not known, or the session has still to choose

/// Makes the table, when the first module with such code is entered or makes a call unseen; and forgets what was found
/// about addresses in no module. False when memory is short; then such code is not traced, which is said.
bool prepare_instrument_calls();
/// The module with this code is going, or has come: what was known of addresses there is asked anew.
void forget_instrument_calls(std::uintptr_t text_begin, std::uintptr_t text_end);
/// The function's switch, or that of tracing as a whole, has changed: makes its entry follow. Under the lock of
/// patching.
void switch_instrument_call(std::uintptr_t function, std::uint32_t id);
/// The id of the function at this address if it has been called, and is traced; else 0. Async-signal-safe, lock-free.
std::uint32_t find_instrument_call(std::uintptr_t function);

extern "C" {
/// Null: nothing is traced in this way.
extern __attribute__((visibility("hidden"))) InstrumentedCall* karst_calls;
/// The id for an address that is not where one looks first; 0: it is not traced.
__attribute__((visibility("hidden"))) std::uint32_t karst_find_call(std::uint64_t function);
}

/// Where one looks first: neighbours in the program are neighbours in the table. instrument.S does the same.
constexpr std::uint32_t first_place(std::uint64_t function) {
  return static_cast<std::uint32_t>((function >> KARST_CALLS_NEAR_SHIFT) +
                                    (function >> KARST_CALLS_FAR_SHIFT) * KARST_CALLS_FACTOR) &
         ((1U << KARST_CALLS_BITS) - 1);
}

}  // namespace karst::runtime
#endif
#endif
