// SPDX-License-Identifier: MIT
// Code that one process has another one execute: collect/inject/ copies it there.
//
// karst_remote_call (x86_64/remote_call.S) calls the process's own dlopen, or a function like it, on a stack of its
// own, and puts everything back by itself: registers, vectors, errno, signal mask and stack. Whoever copied it may die
// at any instant. A RemoteCall lies directly behind the code, 8-byte aligned.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
extern const unsigned char karst_remote_call[];
extern const unsigned char karst_remote_call_end[];
}

namespace karst::arch {

/// Read by the code, never written. Addresses are the other process's.
struct RemoteCall {
  std::uint64_t resume_ip;       ///< where the thread goes on
  std::uint64_t resume_ax;       ///< with this in rax; all else is as it was
  std::uint64_t interrupted_ip;  ///< the same if a signal came meanwhile whose handler runs before
  std::uint64_t interrupted_ax;
  std::uint64_t stack;         ///< where nothing is mapped yet
  std::uint64_t stack_size;    ///< bytes
  std::uint64_t function;      ///< dlopen, or one like it: null means that it failed
  std::uint64_t problem;       ///< dlerror, or one like it
  std::uint64_t error_number;  ///< __errno_location
  std::uint64_t vectors_size;  ///< bytes of xsave's area
  std::uint64_t all_signals;   ///< ones
  std::uint64_t control;       ///< a usual mxcsr
  std::uint64_t mask;          ///< the thread's own signal mask, set back at the end
  std::uint64_t caught;        ///< signals that have a handler
  std::uint64_t may_restart;   ///< not 0: where the handler has SA_RESTART, it goes on as if no signal had come
  // The function's argument follows, ended by a zero.
};
static_assert(offsetof(RemoteCall, control) == 88 && sizeof(RemoteCall) == 120);

/// In the stack's last kRemoteResultSize bytes, until the code takes the stack away.
struct RemoteResult {
  std::uint64_t handle;        ///< what the function returned
  std::uint64_t error_number;  ///< what errno was before
  std::uint64_t error_place;
  char message[1000];  ///< of `problem`, cut
};
inline constexpr std::size_t kRemoteResultSize = 1024;
static_assert(sizeof(RemoteResult) == kRemoteResultSize);

/// libkarst.so has so many bytes of zeros in its code, at karst_attach_room, for such code. Each call takes what it
/// needs, and what was used once is not used again: a signal's handler may yet return into it.
inline constexpr std::size_t kRemoteRoom = 8192;

/// Bytes that xsave needs on this machine.
std::uint64_t vectors_size();

}  // namespace karst::arch
