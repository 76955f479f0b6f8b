// SPDX-License-Identifier: MIT
// Runs when Karst is built: writes the table of system calls that the page's engine has, which cannot have libseccomp.
#include <cstdio>

#include "analysis/syscall_names.h"

int main() {
  constexpr unsigned kMost = 1024;
  std::puts("#include \"analysis/syscall_names.h\"\nnamespace karst::analysis {");
  std::puts("std::string syscall_name(std::uint32_t number) {\n  switch (number) {");
  for (unsigned number = 0; number < kMost; ++number) {
    const std::string name = karst::analysis::syscall_name(number);
    if (!name.empty()) std::printf("    case %u: return \"%s\";\n", number, name.c_str());
  }
  std::puts("    default: return {};\n  }\n}\n}");
}
