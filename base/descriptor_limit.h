// SPDX-License-Identifier: MIT
// How many file descriptors this process may have.
#pragma once
#include <sys/resource.h>

namespace karst {

/// As many as it may: the default of 1,024 is soon reached by who has one for each process or thread of others.
inline void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace karst
