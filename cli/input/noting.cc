// SPDX-License-Identifier: MIT
#include "cli/input/noting.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/command.h"
#include "cli/input/given_options.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{10'000};

void say_of(const collect::Attached& target, const std::string& what) {
  say(fmt::format("process {} ({}): values of {}", target.process.pid, printable(target.process.name), what));
}

}  // namespace

void add_value_options(Command command, ValueArguments& values) {
  add_flag_of(command, format::option_index("args"), values.arguments);
  add_flag_of(command, format::option_index("returns"), values.returned);
}

Result<collect::NotingBegun> begin_noting(collect::Attached& target, const choice::ValueChoice& choice,
                                          std::uint64_t time_ns) {
  auto begun = collect::note_values(target, choice, kPatience);
  if (!begun) return begun;
  const std::string pid = std::to_string(target.process.pid);
  if (begun->meant == 0) return Error{"no function of process " + pid + " is one that --args or --returns means"};
  if (begun->noted == 0 && !begun->problems.empty()) return Error{begun->problems.front()};
  for (const std::string& problem : begun->problems) say(problem);
  say_of(target, plural(begun->noted, "function") + " noted" +
                     (time_ns != 0 ? " for " + duration_text(time_ns) + "; Ctrl-C ends that at once" : std::string()));
  return begun;
}

int end_noting(collect::Attached& target, const std::vector<std::uint64_t>& functions) {
  const auto ended = collect::end_noting(target, functions, kPatience);
  if (!ended) return fail(ended.error());
  say_of(target, plural(*ended, "function") + " not noted any more");
  return kExitOk;
}

}  // namespace karst::cli
