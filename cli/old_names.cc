// SPDX-License-Identifier: MIT
#include "cli/old_names.h"

#include <algorithm>

namespace karst::cli {
namespace {

struct OldName {
  std::string_view name;
  std::string_view command;      ///< that stands in its place
  std::string_view option = {};  ///< and behind that
};
constexpr OldName kOldNames[] = {
    {"stacks", "flame", "--stacks"},   {"hist", "report", "--hist"},  {"graph", "report", "--callers"},
    {"order", "export", "--to=order"}, {"detach", "off", "--detach"}, {"level", "ps", "--levels"},
    {"status", "ps", "--one"},         {"recover", "resolve"},        {"count", "run", "--count"},
};

const OldName* find(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kOldNames), std::end(kOldNames), [=](const OldName& old) { return old.name == name; });
  return found != std::end(kOldNames) ? found : nullptr;
}

}  // namespace

std::string_view command_of(std::string_view name) {
  const OldName* const old = find(name);
  return old != nullptr ? old->command : name;
}

void renew_command(std::vector<std::string>& words) {
  const OldName* const old = words.empty() ? nullptr : find(words.front());
  if (old == nullptr) return;
  words.front() = old->command;
  if (!old->option.empty()) words.emplace(words.begin() + 1, old->option);
}

}  // namespace karst::cli
