// SPDX-License-Identifier: MIT
// Whether the processor's counter (the TSC), which stamps events, can be trusted on this machine: that it is constant
// and the same on all CPUs. Two know more of that than we can measure: the kernel and the processor.
//
// The kernel watches the counter and drops it as its own clock where it is not constant and synchronous
// (/sys/devices/system/clocksource/clocksource0/current_clocksource; kernel/time/clocksource.c and
// arch/x86/kernel/tsc.c of Linux). In a virtual machine the kernel's clock may be one that the host derives from the
// counter (kvm-clock, xen, hyperv_clocksource_tsc_page). Then the counter counts as trusted if the processor says that
// its rate never changes (CPUID 80000007h, EDX bit 8), which a host leaves out where it promises no such thing.
#pragma once
#include <cstddef>

namespace karst::format {

inline constexpr char kClockSourceFile[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// `source`: what that file says, with or without its line's end; empty: it cannot be read. Then the processor's word
/// alone counts.
constexpr bool counter_is_trusted(const char* source, bool is_invariant) {
  const auto is = [source](const char* name) {
    std::size_t i = 0;
    while (name[i] != '\0' && source[i] == name[i]) ++i;
    return name[i] == '\0' && (source[i] == '\0' || source[i] == '\n');
  };
  if (is("tsc")) return true;
  const bool is_derived = is("kvm-clock") || is("xen") || is("hyperv_clocksource_tsc_page") || is("");
  return is_derived && is_invariant;
}

static_assert(counter_is_trusted("tsc\n", false) && counter_is_trusted("kvm-clock\n", true) &&
              counter_is_trusted("", true));
static_assert(!counter_is_trusted("kvm-clock\n", false) && !counter_is_trusted("hpet\n", true) &&
              !counter_is_trusted("tsc-early\n", true) && !counter_is_trusted("", false));

}  // namespace karst::format
