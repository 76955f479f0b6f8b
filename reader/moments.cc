// SPDX-License-Identifier: MIT
#include "reader/moments.h"

#include <fmt/format.h>

#include <string>

#include "format/moments.h"

namespace karst::reader {

const char* moment_kind_name(std::uint32_t kind) {
  switch (static_cast<format::MomentKind>(kind)) {
    case format::MomentKind::kSnapshot:
      return "snapshot";
    case format::MomentKind::kSignal:
      return "signal";
    case format::MomentKind::kTrigger:
      return "trigger";
    case format::MomentKind::kSlowest:
      return "slowest";
    case format::MomentKind::kOver:
      return "over";
    case format::MomentKind::kCrash:
      return "crash";
  }
  return "unknown";
}

Result<const Moment*> find_moment(const Trace& trace, std::uint32_t number) {
  constexpr std::size_t kListed = 200;  // characters
  std::string there;
  for (const Process& process : trace.processes()) {
    for (const Moment& moment : process.moments) {
      if (moment.number == number) return &moment;
      if (there.size() < kListed) there += fmt::format("{}{}", there.empty() ? "" : ", ", moment.number);
    }
  }
  if (there.empty()) return Error{fmt::format("{} has no kept moments", trace.name())};
  return Error{fmt::format("{} has no kept moment {}; it has {}", trace.name(), number, there)};
}

}  // namespace karst::reader
