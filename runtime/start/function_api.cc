// SPDX-License-Identifier: MIT
// What include/karst/function.h has. Calls and returns are in arch/x86_64/zones.S.
#include "runtime/modules/named_functions.h"
#include "runtime/system/memory.h"

extern "C" __attribute__((visibility("default"))) std::uint32_t karst_api_function(const char* name, const char* file,
                                                                                   std::uint32_t line) {
  using namespace karst::runtime;
  const auto part = [](const char* text) {
    NamePart p;
    if (text == nullptr) return p;
    p.data = text;
    while (p.size < kLongestNamePart && text[p.size] != '\0') ++p.size;
    return p;
  };
  return named_function(MadeUp::kNamed, part(name), part(file), line);
}
