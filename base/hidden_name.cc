// SPDX-License-Identifier: MIT
#include "base/hidden_name.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdint>

namespace karst {

/// A name near the limit must not fail for the sake of our ending.
std::string hidden_name(const std::string& name) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
    random = static_cast<std::uint64_t>(::getpid());  // O_EXCL keeps it apart all the same
  std::string hidden = "." + name.substr(0, 200) + ".";
  for (int i = 0; i < 8; ++i, random >>= 5) hidden += "abcdefghijklmnopqrstuvwxyz234567"[random & 31];
  return hidden;
}

}  // namespace karst
