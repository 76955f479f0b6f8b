// SPDX-License-Identifier: MIT
#include "cli/input/patched.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "cli/command.h"
#include "cli/text/help.h"
#include "cli/text/text.h"

namespace karst::cli {
namespace {

using Module = collect::PlainPrograms::Module;

std::string file_of(const std::string& path) { return std::filesystem::path(path).filename(); }

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

/// Some programs are a few lines around a library of theirs.
std::string words_of_libraries(const Module& module, bool few_calls) {
  constexpr std::size_t kFewFunctions = 40;
  if (module.functions >= kFewFunctions && !few_calls) return {};
  constexpr std::size_t kMost = 3;
  std::string words;
  std::size_t said = 0;
  for (const std::string& library : module.libraries) {
    constexpr std::string_view kUsual[] = {"libc.",      "libm.",    "libdl.", "libpthread.", "librt.",  "libutil.",
                                           "libstdc++.", "libgcc_s", "libc++", "ld-linux",    "libkarst"};
    const bool is_usual = std::any_of(std::begin(kUsual), std::end(kUsual),
                                      [&](std::string_view usual) { return library.starts_with(usual); });
    if (!is_usual && ++said <= kMost) words += " --library " + library;
  }
  return words.empty() ? words : "; its libraries may have more:" + words;
}

/// "git: 4,767 of 5,604 functions patched as it was loaded; 771 small (--min-instructions), 66 left alone"
std::string plain_words(const Module& module, const std::string& when, bool few_calls) {
  const std::string name = file_of(module.path);
  if (!module.problem.empty()) return name + " was not built for tracing and is not patched: " + module.problem;
  const auto count = [&](patch::LeftOut why) { return module.counts[static_cast<std::size_t>(why)]; };
  const std::uint64_t patched = count(patch::LeftOut::kNot);
  const std::uint64_t small = count(patch::LeftOut::kSmall);
  const std::uint64_t alone = module.functions - patched - small;
  if (module.named.empty())
    return fmt::format("{}: {} of {} patched {}; {} small (--min-instructions), {} left alone{}", name,
                       count_text(patched), plural(module.functions, "function"), when, count_text(small),
                       count_text(alone), words_of_libraries(module, few_calls));
  std::string words = fmt::format("{}: {} of {} named '{}' patched {}", name, count_text(patched),
                                  plural(module.functions, "function"), joined(module.named, "', '"), when);
  if (alone != 0)
    words += fmt::format("; {} left alone: karst places --named '{}' {} says why", count_text(alone),
                         joined(module.named, "' --named '"), module.path);
  return words;
}

/// A list of files' names, which ends where it grows long.
std::string some_of(const std::set<std::string>& paths) {
  constexpr std::size_t kMost = 12;
  std::string list;
  std::size_t shown = 0;
  for (const std::string& path : paths) {
    if (++shown > kMost) return list + fmt::format(" and {} more", paths.size() - kMost);
    list += (list.empty() ? "" : ", ") + file_of(path);
  }
  return list;
}

bool has_match(const choice::LibraryChoice& library, const std::set<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) { return library.means(path); });
}

std::string no_library_words(const choice::LibraryChoice& library, const std::set<std::string>& loaded,
                             const std::set<std::string>& built) {
  if (has_match(library, built))
    return fmt::format(
        "--library '{}' means a library that was built for tracing; --function chooses among its functions",
        library.text);
  std::vector<std::string> names;
  std::set<std::string> others;
  for (const std::string& path : loaded) {
    if (choice::is_below_runtime(path)) {
      if (library.matches(path)) return fmt::format("--library '{}': {}", library.text, choice::kWhyNeverPatched);
      continue;
    }
    others.insert(path);
    const std::string name = file_of(path);
    names.push_back(name.substr(0, name.find(".so")));
  }
  const std::string stem = library.files.substr(0, library.files.find_first_of("*?["));
  std::string words =
      fmt::format("--library '{}' means no library that was loaded{}", library.text, did_you_mean(stem, names));
  words += others.empty() ? "; there was none without sleds but libc" : "; there were " + some_of(others);
  return words;
}

}  // namespace

bool say_what_was_patched(const std::vector<Module>& modules, const std::string& when, bool few_calls) {
  constexpr std::size_t kMost = 4;
  std::size_t said = 0;
  std::size_t more = 0;
  for (const Module& module : modules) {
    if (module.problem.empty() && module.functions == 0) continue;  // was said, or is about probes alone
    if (++said > kMost)
      ++more;
    else
      say(printable(plain_words(module, when, few_calls)));
  }
  if (more != 0) say(fmt::format("so {} {}", more == 1 ? "was" : "were", plural(more, "other file")));
  return said != 0;
}

std::vector<std::string> left_alone(const std::vector<reader::Module>& modules) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> lines;
  std::size_t more = 0;
  for (const reader::Module& module : modules) {
    if (module.left_alone == 0) continue;
    if (lines.size() == kMost)
      ++more;
    else
      lines.push_back(printable(fmt::format("{} of {} left alone; why: karst places {}",
                                            plural(module.left_alone, "function"), file_of(module.path), module.path)));
  }
  if (more != 0) lines.push_back(fmt::format("so are some of {}", plural(more, "other file")));
  return lines;
}

void say_why_fibers(const std::string& why) {
  if (!why.empty())
    say("stacks that the program switches have lanes of their own, as it " + printable(why) +
        " (--fibers=none: no lanes)");
}

void say_which_probes(const std::vector<patch::ProbeChoice>& choices, const std::vector<Module>& modules) {
  std::vector<std::string> others;
  bool any = choices.empty();
  for (const Module& module : modules) {
    others.insert(others.end(), module.other_probes.begin(), module.other_probes.end());
    if (module.probes.empty()) continue;
    any = true;
    const auto is_left = [](const patch::ProbeOutcome& p) { return p.left_out != patch::LeftOut::kNot; };
    const auto left = static_cast<std::size_t>(std::count_if(module.probes.begin(), module.probes.end(), is_left));
    std::string words = fmt::format("{}: {} of {} recorded", file_of(module.path),
                                    count_text(module.probes.size() - left), plural(module.probes.size(), "probe"));
    if (left != 0) {
      const auto& first = *std::find_if(module.probes.begin(), module.probes.end(), is_left);
      words += fmt::format("; {} left alone, {} first: {} ('karst places --probes' lists them)", count_text(left),
                           first.name, patch::describe(first.left_out));
    }
    say(printable(words));
  }
  if (any) return;
  std::vector<std::string> texts;
  texts.reserve(choices.size());
  for (const patch::ProbeChoice& choice : choices) texts.push_back(choice.text);
  std::string words =
      fmt::format("--probes '{}' means no probe of the program or its libraries", joined(texts, "', '"));
  words += others.empty() ? ", which have none" : "; there are " + joined(others, ", ");
  say(printable(words));
}

void say_unseen_allocators(const std::vector<Module>& modules) {
  for (const Module& module : modules) {
    const auto left = std::find_if(module.detours.begin(), module.detours.end(),
                                   [](const patch::DetourOutcome& d) { return d.left_out != patch::LeftOut::kNot; });
    if (left != module.detours.end())
      say(printable(fmt::format("--system memory: {} has an allocator of its own in it, which is not seen; {}: {}",
                                file_of(module.path), left->name, patch::describe(left->left_out))));
  }
}

void say_what_was_not_named(const std::vector<choice::LibraryChoice>& libraries, const std::vector<Module>& patched,
                            const std::set<std::string>& loaded, const std::set<std::string>& built) {
  // Of one that was built for tracing, other compilers' functions are patched.
  const auto is_patched_in_part = [&](const choice::LibraryChoice& library) {
    return std::any_of(patched.begin(), patched.end(), [&](const Module& m) {
      return m.functions != 0 && built.contains(m.path) && library.means(m.path);
    });
  };
  for (const choice::LibraryChoice& library : libraries)
    if (!has_match(library, loaded) && !is_patched_in_part(library))
      say(printable(no_library_words(library, loaded, built)));
  // A glob of libraries means several: it is no mistake that one of them has no such function.
  const auto has_some = [&](const std::string& named) {
    return std::any_of(patched.begin(), patched.end(), [&](const Module& m) {
      return m.functions != 0 && std::find(m.named.begin(), m.named.end(), named) != m.named.end();
    });
  };
  for (const Module& module : patched) {
    if (!module.problem.empty() || module.functions != 0 || module.named.empty()) continue;
    if (std::any_of(module.named.begin(), module.named.end(), has_some)) continue;
    std::string words =
        fmt::format("{} has no function named '{}'", file_of(module.path), joined(module.named, "' or '"));
    if (!module.near.empty()) words += "; it has " + joined(module.near, ", ");
    say(printable(words));
  }
}

}  // namespace karst::cli
