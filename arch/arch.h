// SPDX-License-Identifier: MIT
// What each processor architecture provides to the runtime: bytes of sleds and trampolines. (Its hooks are in hooks.S.)
//
// The headers of arch/ use nothing of Karst's. Its assembly is part of libkarst.so alone, and takes the constants that
// it shares with C++ from format/ and runtime/.
#pragma once
#include <cstdint>

namespace karst::arch {

/// What the compiler has put in a sled's place, and so what a patched one is.
enum class Sled : std::uint8_t {
  kNop,      ///< gcc's: a NOP of 5 bytes                    -> a call
  kSkip,     ///< clang's entry: a jump over NOPs             -> a call and a NOP
  kTail,     ///< clang's tail call: the same bytes           -> the same, or what stands below
  kReturn,   ///< clang's exit: a return and unreachable NOPs -> a call and a return
  kNothing,  ///< none: a place that is only known, and never patched
};

// clang 14 to 18, asked for small code, make conditional tail calls: the jump behind the sled is `jge function`. The
// flags are live across such a sled, and the function is left only if the condition holds. So the patched sled asks
// first:
//
//   jmp  behind the sled      jl   behind the sled          (the opposite condition, over the same nine bytes)
//   NOP of nine bytes     ->  call trampoline               (to a hook that keeps the flags: hooks.S)
//   jge  function             NOP of four bytes
//                             jge  function                 (as the compiler wrote it)

/// The instruction that leaves the function, behind an exit's sled.
enum class Leaves : std::uint8_t {
  kAlways,  ///< a return or a jump
  kIf,      ///< a conditional jump: the flags are live, and execution may go on behind it
  kUnknown  ///< something that no compiler is known to write there: whether flags are live is not known either
};

inline constexpr std::uint32_t kTrampolineSize = 16;
/// A sled's call reaches this far, a little less to be safe.
inline constexpr std::uint64_t kReach = (std::uint64_t{1} << 31) - (std::uint64_t{1} << 20);

/// Bytes that a sled takes.
std::uint32_t sled_size(Sled sled);
/// True if the bytes at `site` are such a sled, as the compiler wrote it.
bool is_sled(const unsigned char* site, Sled sled = Sled::kNop);
/// What stands behind a sled, if at most `size` bytes may be read from `behind` on.
Leaves leaves(const unsigned char* behind, std::uint64_t size);
/// True for a sled of clang's in front of a conditional tail call. Its module has no defect.
bool is_conditional(const unsigned char* site, Sled sled);
/// Writes the call to a trampoline over a sled. The site is writable, and nobody executes it meanwhile.
void write_call(unsigned char* site, std::uintptr_t trampoline, Sled sled = Sled::kNop);
/// Restores the bytes that the compiler wrote.
void write_off(unsigned char* site, Sled sled = Sled::kNop);

// Sleds that threads may be executing are changed in three passes over all of them. Behind each pass every processor
// must have been told that code has changed (membarrier's SYNC_CORE), so that no thread has instructions at hand that
// are older than what the next pass writes.
//
//   pass      gcc's NOP, on and off      clang's jump over NOPs, and return
//   kBlock    jump over the sled         off: the jump, or the return
//   kTail     the other three bytes      on: all behind the first two bytes
//   kHead     NOP, or call               on: call, or the conditional jump over it
//
// Passes kBlock and kHead store two bytes at once, which the processor does as one within an aligned quadword. So a
// thread finds a whole instruction at any moment (docs/security.md has what processors promise). Instructions that a
// call returns to stay as they are once written.

enum class Pass : std::uint8_t { kBlock, kTail, kHead };

/// False if the first two bytes lie in two aligned quadwords. The compilers' tools align all sleds to 2.
bool can_change_live(const unsigned char* site);
/// One pass over one sled; the site is writable. `trampoline` 0: off.
void change_live(Pass pass, unsigned char* site, std::uintptr_t trampoline, Sled sled);
/// True if the sled is a call now, to whatever; false if it is off. Anything else that may stand there is a defect.
bool is_on(const unsigned char* site, Sled sled);
bool is_off(const unsigned char* site, Sled sled);

/// Writes a trampoline: pass `event_low_bits`, jump to the address stored at `hook_slot`. At most kTrampolineSize
/// bytes.
void write_trampoline(unsigned char* at, std::uint32_t event_low_bits, std::uintptr_t hook_slot);
/// Writes the one that leads to a hook of tail calls (tail_hooks.S). The exit trampoline right before it is that of the
/// id for calls that were left, the one right behind it that of the id for those whose callee has returned.
void write_tail_trampoline(unsigned char* at, std::uintptr_t hook_slot);
/// Another slot for one of the others, by one store, while threads may execute it. `at` is one above a multiple of
/// kTrampolineSize.
void aim_trampoline(unsigned char* at, std::uintptr_t hook_slot);

/// Makes a thread with clone(): its flags, the top of the thread's stack, the word that the kernel sets to the thread's
/// id and clears when it ends, its thread-local pointer. It calls `body` and ends. What clone() returned.
extern "C" __attribute__((visibility("hidden"))) long karst_make_thread(std::uint64_t flags, std::uintptr_t stack_top,
                                                                        std::uint32_t* tid,
                                                                        std::uintptr_t thread_pointer, void (*body)());
/// What a handler of the kernel's returns to (SA_RESTORER).
extern "C" __attribute__((visibility("hidden"))) void karst_return_from_signal();
/// Where the program steps through itself (x86: the trap flag): ends that for the calling thread. True: it did.
extern "C" __attribute__((visibility("hidden"))) bool karst_stop_stepping();
/// Begins that again.
extern "C" __attribute__((visibility("hidden"))) void karst_go_on_stepping();

}  // namespace karst::arch
