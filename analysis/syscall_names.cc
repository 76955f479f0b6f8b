// SPDX-License-Identifier: MIT
#include "analysis/syscall_names.h"

#include <seccomp.h>

#include <cstdlib>
#include <limits>
#include <memory>

namespace karst::analysis {

std::string syscall_name(std::uint32_t number) {
  // libseccomp names calls that other architectures have by negative numbers.
  if (number > std::uint32_t{std::numeric_limits<int>::max()}) return {};
  const std::unique_ptr<char, decltype(&std::free)> name(
      seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, static_cast<int>(number)), &std::free);
  return name ? name.get() : std::string();
}

}  // namespace karst::analysis
