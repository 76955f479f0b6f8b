// SPDX-License-Identifier: MIT
// Waits, and who had the CPU meanwhile, in words as they come: names are whole, and nothing is made fit for a terminal.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "analysis/kept_off.h"
#include "analysis/waits.h"

namespace karst::words {

/// How names and times are written.
struct Writing {
  std::function<std::string(const reader::Thread& thread, std::uint32_t function)> name;
  std::function<std::string(std::uint64_t ticks)> time;
};

/// "blocked in futex, woken by 4711 worker in Queue::push(int); the last 1.2 ms waiting for a CPU". `kept_off`: who had
/// the CPU meanwhile, in the words of kept_off_words(); empty: not known, or not looked for.
std::string wait_words(const analysis::Wait& wait, const reader::States& states, const Writing& writing,
                       const std::string& kept_off = {});
/// "kept off CPU 0: 18.9 ms by 12 housekeeping in sweep, 1.0 ms by 14 capture, 0.3 ms not known"; empty: nothing is
/// known, or the CPU idled.
std::string kept_off_words(const analysis::KeptOff& kept, const reader::States& states, const Writing& writing);

/// "4711 worker", "an interrupt", "an interrupt while 4711 worker ran", "the idle thread"; empty when nobody is known.
std::string task_words(const reader::States& states, std::uint32_t task);
/// "4711 worker", "812 stress and perhaps others".
std::string share_words(const analysis::CpuShare& share, const reader::States& states);
/// "; cut: ..." where an end of the wait was not recorded, else empty.
std::string cut_words(const analysis::Wait& wait);
/// Where a thread is blocked: "futex", "uninterruptible sleep"; empty: not known.
std::string blocked_words(std::uint32_t syscall, char letter);
/// "running", "preempted", "woken", "blocked", "gone" or "unknown".
const char* state_word(reader::ThreadState state);

}  // namespace karst::words
