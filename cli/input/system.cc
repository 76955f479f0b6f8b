// SPDX-License-Identifier: MIT
#include "cli/input/system.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>

#include "cli/command.h"
#include "cli/input/program_options.h"
#include "cli/text/help.h"
#include "cli/text/text.h"
#include "format/memory.h"
#include "format/options.h"

namespace karst::cli {
namespace {

constexpr std::uint64_t kLeastSample = 1024;

/// HOW as the library takes it; empty: it is none.
using ReadHow = std::string (*)(const std::string& how);

struct System {
  std::string_view name;
  std::string_view library;
  ReadHow read_how;        // null: there is none
  std::string_view needs;  // what HOW has to be
};

constexpr System kSystems[] = {
    {"locks", "libkarst-locks.so.0", [](const std::string& how) { return how == "all" ? how : std::string(); }, "all"},
    {"files", "libkarst-files.so.0", nullptr, ""},
    {"net", "libkarst-net.so.0", nullptr, ""},
    {"time", "libkarst-time.so.0", nullptr, ""},
    {"memory", "libkarst-memory.so.0",
     [](const std::string& how) {
       std::uint64_t bytes = 0;
       return format::parse_size(how.c_str(), kLeastSample, bytes) ? std::to_string(bytes) : std::string();
     },
     "a size from 1K to 64G, like 512K: one allocation in so many bytes is recorded"},
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const System& system : kSystems) all.emplace_back(system.name);
  return all;
}

constexpr std::chrono::milliseconds kLimit{10'000};

/// In any way: whose libraries may be in a process.
std::vector<collect::SystemWish> all_systems() {
  std::vector<collect::SystemWish> all;
  for (const System& system : kSystems) {
    collect::SystemWish wish;
    wish.name = system.name;
    wish.library = system.library;
    all.push_back(std::move(wish));
  }
  return all;
}

std::string who(const collect::Attached& target) {
  return fmt::format("process {} ({})", target.process.pid, printable(target.process.name));
}

void say_limits(const collect::SystemWish& wish, const collect::SystemBegun& begun) {
  if (!begun.problem.empty())
    say(fmt::format("{}: calls of libraries that came since are not seen: {}", wish.name, begun.problem));
  if (begun.left != 0)
    say(fmt::format("{}: {} not seen, as the system did not let karst redirect them", wish.name,
                    plural(begun.left, "place") + (begun.left == 1 ? " that calls is" : " that call are")));
  const std::string why = begun.own_problem.empty() ? "" : "; " + printable(begun.own_problem);
  if (begun.inside != 0)
    say(fmt::format("{}: calls of {} that the program has in itself are not seen{}", wish.name,
                    plural(begun.inside, "function"), why));
  else if (!why.empty())
    say(fmt::format("{}: an allocator that the program has in itself is not seen{}", wish.name, why));
  if (begun.came_late && begun.slots == 0)
    say(fmt::format("{}: no module of it calls such a function by a name, so nothing will be seen", wish.name));
}

}  // namespace

void add_system_option(Command command, SystemArguments& system) {
  command
      .add_option("--system", system,
                  "Record what the program asks of its system, as LIST with commas: locks (waits for locks: which, and "
                  "who had it; locks=all: also who has which lock when), memory (malloc, free and their like; "
                  "memory=512K: one in 512 KiB, by chance), files (calls that open, read and write them), net (calls "
                  "of sockets, and waits for them), time (sleeps, waits for processes)")
      .type_name("LIST")
      .allow_extra_args(false);
}

std::vector<std::string> SystemChoice::functions() const {
  std::vector<std::string> all;
  for (const collect::SystemWish& wish : wishes) all.insert(all.end(), wish.functions.begin(), wish.functions.end());
  return all;
}

Result<SystemChoice> system_choice(const SystemArguments& system) {
  SystemChoice choice;
  std::vector<std::string_view> chosen;
  for (const std::string& words : system) {
    for (std::size_t at = 0; at <= words.size();) {
      const std::size_t end = std::min(words.find(',', at), words.size());
      const std::string word = words.substr(at, end - at);
      at = end + 1;
      const std::string name = word.substr(0, word.find('='));
      const System* const found =
          std::find_if(std::begin(kSystems), std::end(kSystems), [&](const System& s) { return s.name == name; });
      if (found == std::end(kSystems))
        return Error{fmt::format("--system {}: it is one of {}{}", word.empty() ? "''" : word, fmt::join(names(), ", "),
                                 did_you_mean(name, names()))};
      if (std::find(chosen.begin(), chosen.end(), found->name) != chosen.end())
        return Error{fmt::format("--system {}: {} is named twice", word, name)};
      chosen.push_back(found->name);
      std::string how;
      if (word != name) {
        how = found->read_how != nullptr ? found->read_how(word.substr(name.size() + 1)) : "";
        if (how.empty())
          return Error{fmt::format("--system {}: {}", word,
                                   found->read_how == nullptr ? fmt::format("{} takes nothing behind it", name)
                                                              : fmt::format("behind = comes {}", found->needs))};
        choice.how += fmt::format("{}{}={}", choice.how.empty() ? "" : ",", name, how);
      }
      auto library = find_library(std::string(found->library));
      if (!library) return library.error();
      collect::SystemWish wish;
      wish.name = name;
      wish.library = *library;
      if (how == "all") wish.mode = format::InterposeMode::kAll;
      if (name == "memory")
        wish.functions.assign(std::begin(format::kAllocatorFunctions), std::end(format::kAllocatorFunctions));
      if (name == "memory" && !how.empty()) wish.sample = std::stoull(how);
      choice.wishes.push_back(std::move(wish));
      choice.libraries.push_back(std::move(*library));
    }
  }
  return choice;
}

int begin_systems(collect::Attached& target, const std::vector<collect::SystemWish>& wishes) {
  std::vector<std::string> begun_now;
  std::vector<std::string> were_on;
  int status = kExitOk;
  for (const collect::SystemWish& wish : wishes) {
    const auto begun = collect::begin_system(target, wish, kLimit);
    if (!begun) {
      status = fail(begun.error());
      continue;
    }
    say_limits(wish, *begun);
    (begun->was_on ? were_on : begun_now).push_back(wish.name);
  }
  const auto say = [&](const std::vector<std::string>& which, const char* what) {
    if (!which.empty())
      std::fprintf(stderr, "karst: %s: %s\n", who(target).c_str(),
                   fmt::format("{} {}", fmt::join(which, ", "), what).c_str());
  };
  say(begun_now, "recorded from now on");
  say(were_on, "recorded as before");
  return status;
}

int end_systems(collect::Attached& target, const std::vector<collect::SystemWish>& wishes) {
  const auto ended = collect::end_systems(target, wishes.empty() ? all_systems() : wishes, kLimit);
  if (!ended) return fail(ended.error());
  std::fprintf(stderr, "karst: %s: %s\n", who(target).c_str(),
               ended->empty() ? "none of that was recorded"
                              : fmt::format("{} not recorded any more", fmt::join(*ended, ", ")).c_str());
  return kExitOk;
}

Status end_all_systems(collect::Attached& target) {
  const auto ended = collect::end_systems(target, all_systems(), kLimit);
  return ended ? Status(Unit{}) : Status(ended.error());
}

}  // namespace karst::cli
