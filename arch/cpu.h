// SPDX-License-Identifier: MIT
// What each processor architecture provides in a few instructions: its clock, atomics among one thread and its own
// handlers, bytes, system calls, wide division, checksums. (Sleds and trampolines are in arch.h, hooks in hooks.S.)
//
// All of them may be called by any thread in any context: they use no vector register, no stack of note, no libc. None
// of them fails. The runtime uses them all, other rooms the clock and checksums.
//
// A new architecture is a folder with these definitions. test/arch/ sees to it that nothing of x86 stands elsewhere.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::arch {

/// The clock that events are stamped with (ticks). It may be read before what stands before it in the program is done.
std::uint64_t time_stamp();
/// The same, once all stores before it are done.
std::uint64_t time_stamp_behind_stores();
/// The processor says that its counter has one rate and never stops while the machine is awake.
bool counter_is_invariant();
/// What stands before it is done before anything behind it begins: sets a time stamp apart from the work it times.
void finish_before();
/// Of the calling thread, as the ABI of thread-local storage has it: libc's own data are there, on the thread's stack.
std::uintptr_t thread_pointer();
/// Valgrind runs this program.
bool runs_on_valgrind();
/// For loops that wait: leaves the core to others for a moment.
void pause();

/// Compare-and-exchange among one thread and its own handlers: without the lock that makes it dear.
bool exchange_locally(std::uintptr_t& word, std::uintptr_t expected, std::uintptr_t desired);
/// The same for two words at once, at a multiple of 16: true if both were as expected, and are as desired now.
bool exchange_two_locally(std::uint64_t* words, std::uint64_t expected, std::uint64_t expected_next,
                          std::uint64_t desired, std::uint64_t desired_next);
/// Adds one, as one among the thread and its own handlers.
void increment_locally(std::uint64_t& word);
void decrement_locally(std::uint64_t& word);

void copy_bytes(void* to, const void* from, std::size_t n);
void fill_bytes(void* to, int value, std::size_t n);
/// `n` is a multiple of 8.
void zero_words(void* p, std::size_t n);

/// A system call, made directly; the kernel's value: -errno on failure.
long system_call(long number, long a, long b, long c, long d, long e, long f);

/// Calls `work`, which may use vector registers, with the program's put away; that takes 512 bytes of stack.
void with_vectors_kept(void (*work)(void*), void* argument);

/// high:low / divisor. Requires high < divisor.
std::uint64_t divide(std::uint64_t high, std::uint64_t low, std::uint64_t divisor);
/// Returns the lower half of the product; `high` gets the upper one.
std::uint64_t multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& high);

/// Whether the processor has the instructions for the next two, which must not be called without. Asking takes a
/// microsecond on a virtual machine: remember the answer.
bool has_crc32c();
std::uint64_t crc32c_of_word(std::uint64_t crc, std::uint64_t word);
std::uint32_t crc32c_of_byte(std::uint32_t crc, unsigned char byte);

}  // namespace karst::arch

#if defined(__x86_64__)
#include "arch/x86_64/cpu.h"
#else
namespace karst::arch {
// Until there is a folder for it: checksums go on without instructions of their own, and no filter is understood.
inline constexpr std::uint32_t kAuditArchitecture = 0;
inline bool has_crc32c() { return false; }
inline std::uint64_t crc32c_of_word(std::uint64_t, std::uint64_t) { __builtin_unreachable(); }
inline std::uint32_t crc32c_of_byte(std::uint32_t, unsigned char) { __builtin_unreachable(); }
}  // namespace karst::arch
#endif
