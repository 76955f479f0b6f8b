// SPDX-License-Identifier: MIT
#include "patch/stack_switchers.h"

namespace karst::patch {

using namespace std::string_view_literals;

std::string stack_switcher(std::span<const std::string_view> libraries,
                           const std::function<std::string_view(std::initializer_list<std::string_view>)>& find_name) {
  constexpr std::string_view kLibraries[] = {"libboost_context.so", "libboost_coroutine.so", "libboost_fiber.so",
                                             "libco.so", "libruby"};
  for (const std::string_view library : libraries)
    for (const std::string_view known : kLibraries)
      if (library.starts_with(known)) return "is linked with " + std::string(library);
  // Boost.Context's, which PHP has, too, libco's and minicoro's.
  std::string_view name = find_name({"\0jump_fcontext\0"sv, "\0co_switch\0"sv, "\0_mco_switch\0"sv});
  if (name.empty()) return {};
  name = name.substr(1, name.size() - 2);
  return "has the function " + std::string(name);
}

}  // namespace karst::patch
