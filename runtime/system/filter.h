// SPDX-License-Identifier: MIT
// System calls that a filter of the program's (seccomp) has made deadly: a filter may end the process, or raise a
// signal, where a guest makes a call that its host never makes. From then on sys::call() answers these with EPERM by
// itself, and the runtime goes on as on a system that refuses them.
//
// A filter is a program for a small machine (classic BPF) that jumps forward alone. One pass over it for each number of
// a call finds every answer that it can give, whatever the call's arguments are.
#pragma once
#include <linux/filter.h>

#include <cstdint>

namespace karst::runtime {

/// True if the filter may answer a call of this number otherwise than by letting it pass or by an error. Uses memory of
/// the process's own: one caller at a time.
bool is_deadly(const sock_filter* filter, std::uint32_t count, std::uint32_t number);

/// The calling thread has installed the filter, or another thread has. Any thread; async-signal-safe, lock-free.
void heed_filter(const sock_fprog& filter);

}  // namespace karst::runtime
