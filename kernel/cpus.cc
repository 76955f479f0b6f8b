// SPDX-License-Identifier: MIT
#include "kernel/cpus.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string>

namespace karst::kernel {

std::vector<std::uint16_t> parse_cpu_list(std::string_view text) {
  std::vector<std::uint16_t> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::uint16_t first = 0;
    const auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc()) break;
    at = read.ptr;
    std::uint16_t last = first;
    if (at != end && *at == '-') {
      const auto second = std::from_chars(at + 1, end, last);
      if (second.ec != std::errc()) break;
      at = second.ptr;
    }
    for (std::uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(static_cast<std::uint16_t>(cpu));
    if (at == end || *at != ',') break;
    ++at;
  }
  return cpus;
}

std::vector<std::uint16_t> online_cpus() {
  std::ifstream in("/sys/devices/system/cpu/online");
  std::string text;
  std::getline(in, text);
  auto cpus = parse_cpu_list(text);
  // Without /sys: numbers are dense, as far as we can know.
  const long count = cpus.empty() ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
  for (long cpu = 0; cpu < count; ++cpu) cpus.push_back(static_cast<std::uint16_t>(cpu));
  return cpus;
}

}  // namespace karst::kernel
