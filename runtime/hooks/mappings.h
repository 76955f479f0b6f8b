// How the process's memory is protected, as the kernel says (/proc/self/maps).
#pragma once
#include <cstdint>

namespace karst::runtime {

struct Mapping {
  std::uintptr_t begin, end;
  int protection;  ///< PROT_READ and so on
};

/// Calls visit(context, mapping) for each, lowest first, until that says false. False: they cannot be read.
bool for_each_mapping(void* context, bool (*visit)(void* context, const Mapping& mapping));

}  // namespace karst::runtime
